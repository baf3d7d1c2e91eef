import { expect } from 'chai';
import { Webhook } from 'standardwebhooks';
import { CouncilClient, ForbiddenError, InvalidError, NotFoundError } from '../../src/client/client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { untilTrue } from '../support/until-true.js';
import type { Receiver } from '../support/webhook-receiver.js';
import { startReceiver } from '../support/webhook-receiver.js';
import { rejectionOf } from '../support/rejection.js';

describe('The client, with webhooks', () => {
  let service: RunningService;
  let receiver: Receiver;
  let council: CouncilClient;

  before(async () => {
    receiver = await startReceiver();
    service = await startService({ webhookAllowPrivate: true });
    const { key } = await new CouncilClient({ url: service.url }).keys.add({
      name: 'ann',
      scopes: ['admin', 'run', 'read'],
    });
    council = new CouncilClient({ url: service.url, key });
  });
  after(async () => {
    await service.stop();
    await receiver.stop();
  });

  it('registers, follows, retries, rotates and removes a webhook', async () => {
    const { id, secret, ...registered } = await council.webhooks.register({
      url: receiver.url,
      types: ['RunCompleted'],
    });
    expect(registered).to.deep.include({ types: ['RunCompleted'], blueprint_id: null });
    await (await council.runs.start({ topic: 'Trees' })).result();
    await receiver.until((all) => all.length === 1);
    const [received] = receiver.received;
    expect(new Webhook(secret).verify(received?.body ?? '', received?.headers as Record<string, string>)).to.be.an(
      'object',
    );
    await untilTrue(async () => (await council.webhooks.deliveries(id))[0]?.status === 'delivered');
    const [delivery] = await council.webhooks.deliveries(id);
    expect((await council.webhooks.retry(id, delivery?.id ?? '')).status).to.equal('waiting');
    await receiver.until((all) => all.length === 2);
    expect((await council.webhooks.rotate(id)).secret).not.to.equal(secret);
    expect((await council.webhooks.list()).map((each) => each.id)).to.deep.equal([id]);
    await council.webhooks.remove(id);
    expect(await council.webhooks.list()).to.deep.equal([]);
    expect(await rejectionOf(council.webhooks.deliveries(id))).to.be.instanceOf(NotFoundError);
  });

  it('reports what the service refuses', async () => {
    expect(await rejectionOf(council.webhooks.register({ url: 'ftp://example.com' }))).to.be.instanceOf(InvalidError);
    const { key } = await council.keys.add({ name: 'ben', scopes: ['read'] });
    const reader = new CouncilClient({ url: service.url, key });
    expect(await rejectionOf(reader.webhooks.list())).to.be.instanceOf(ForbiddenError);
  });
});
