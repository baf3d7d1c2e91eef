import { expect } from 'chai';
import { Webhook } from 'standardwebhooks';
import type { CouncilBench } from '../support/council-command.js';
import { councilBench } from '../support/council-command.js';
import { restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { untilTrue } from '../support/until-true.js';
import type { Receiver } from '../support/webhook-receiver.js';
import { startReceiver } from '../support/webhook-receiver.js';

describe('council webhooks', () => {
  let bench: CouncilBench;
  let service: RunningService;
  let receiver: Receiver;

  before(async () => {
    bench = councilBench();
    receiver = await startReceiver();
    service = await startService({ webhookAllowPrivate: true });
  });
  after(async () => {
    await service.stop();
    await receiver.stop();
    await bench.clear();
  });

  const webhooks = (...words: readonly string[]) => bench.council(['webhooks', ...words, '--url', service.url]);

  it('registers a webhook, shows its deliveries, retries one, and removes it', async () => {
    const added = await webhooks('add', receiver.url, '--types', 'RunCompleted, RunFailed');
    expect(added.code, added.stderr).to.equal(0);
    const secret = added.stdout.trim();
    expect(secret).to.match(/^whsec_\S+$/);
    const [, id = ''] = /Webhook (\S+) is registered/.exec(added.stderr) ?? [];
    expect((await webhooks('list')).stdout).to.equal(`${id}  ${receiver.url}  RunCompleted,RunFailed\n`);
    await restClient(service.url).start();
    await receiver.until((all) => all.length === 1);
    const [received] = receiver.received;
    const headers = { ...received?.headers } as Record<string, string>;
    expect(new Webhook(secret).verify(received?.body ?? '', headers)).to.be.an('object');
    await untilTrue(async () => (await webhooks('deliveries', id)).stdout.includes('delivered, 1 attempt'));
    const delivery = String(headers['webhook-id']);
    expect(await webhooks('retry', id, delivery)).to.include({ code: 0, stdout: '' });
    await receiver.until((all) => all.length === 2);
    expect((await webhooks('rotate', id)).stdout.trim()).to.match(/^whsec_\S+$/);
    expect((await webhooks('remove', id)).code).to.equal(0);
    expect((await webhooks('list')).stderr).to.equal('There is no webhook\n');
  });

  it('exits 2 for wrong words and refusals', async () => {
    const faults: readonly (readonly [readonly string[], string])[] = [
      [['add'], 'The address is missing'],
      [['retry', 'x'], 'The delivery is missing'],
      [['list', 'x'], 'Too many words'],
      [['send'], 'There is no command "webhooks send"'],
      [['add', 'ftp://x'], 'Input should be an http or https URL'],
      [['add', receiver.url, '--types', 'RunEnded'], 'types'],
    ];
    for (const [words, text] of faults) {
      const ended = await webhooks(...words);
      expect([words, ended.code]).to.deep.equal([words, 2]);
      expect(ended.stderr).to.include(text);
    }
    const none = await bench.council(['webhooks', 'list']);
    expect(none.stderr).to.include('--url is missing');
  });
});
