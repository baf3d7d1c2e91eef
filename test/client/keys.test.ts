import { expect } from 'chai';
import { CouncilClient, ForbiddenError, NotFoundError, UnauthorizedError } from '../../src/client/client.js';
import { systemWithoutBackoff } from '../support/client-system.js';
import { instantModel } from '../support/instant-model.js';
import { rejectionOf } from '../support/rejection.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';

describe('The client of a service with keys', () => {
  let service: RunningService;
  const clientOf = (key?: string): CouncilClient =>
    new CouncilClient({ url: service.url, key, system: systemWithoutBackoff() });
  let admin: CouncilClient;

  before(async () => {
    service = await startService({ model: instantModel() });
    const { key } = await clientOf().keys.add({ name: 'ann', scopes: ['admin', 'read', 'audit'] });
    admin = clientOf(key);
  });
  after(() => service.stop());

  it('adds keys with the rights of their scopes', async () => {
    const added = await admin.keys.add({ name: 'bob', scopes: ['read', 'run'], expiresIn: '30d' });
    expect(Date.parse(added.expires_at ?? '')).to.be.greaterThan(Date.now());
    const bob = clientOf(added.key);
    const run = await bob.runs.start({ topic: 'Trees' });
    expect(await run.result()).to.include({ status: 'completed' });
    const refused = await rejectionOf(bob.blueprints.create({ name: 'Mine', nodes: [] }));
    expect(refused).to.be.instanceOf(ForbiddenError).and.have.property('detail').that.includes('author');
    expect(await bob.session.get()).to.deep.include({ actor: 'bob', scopes: ['read', 'run'] });
    expect((await admin.keys.list()).map(({ name }) => name)).to.deep.equal(['ann', 'bob']);
  });

  it('is refused without a key, with a wrong key, and with a revoked key', async () => {
    const { key } = await admin.keys.add({ name: 'cleo', scopes: ['read'], expiresAt: new Date(Date.now() + 60_000) });
    const cleo = clientOf(key);
    const stream = cleo.feed()[Symbol.asyncIterator]();
    await stream.next();
    await admin.keys.revoke('cleo');
    await admin.keys.revoke('cleo');
    for (const client of [clientOf(), clientOf('council_wrong'), cleo]) {
      expect(await rejectionOf(client.session.get())).to.be.instanceOf(UnauthorizedError);
    }
    // The open stream ends, and the next attempt reports the reason.
    const drained = async (): Promise<void> => {
      while ((await stream.next()).done !== true);
    };
    expect(await rejectionOf(drained())).to.be.instanceOf(UnauthorizedError);
    expect(await rejectionOf(admin.keys.revoke('nobody'))).to.be.instanceOf(NotFoundError);
    const { events } = await admin.keys.events({ limit: 1000 });
    expect(events.map(({ type }) => type)).to.include.members(['KeyAdded', 'KeyRevoked']);
  });

  it('signs in with a key, and requests tickets', async () => {
    const { key } = await admin.keys.add({ name: 'dora', scopes: ['read'] });
    expect(await clientOf().session.signIn(key)).to.include({ actor: 'dora' });
    expect(await rejectionOf(clientOf().session.signIn('council_wrong'))).to.be.instanceOf(UnauthorizedError);
    const { ticket } = await clientOf(key).session.ticket();
    const answer = await fetch(`${service.url}/api/feed?from=head&ticket=${ticket}`);
    expect(answer.status).to.equal(200);
    await answer.body?.cancel();
  });
});
