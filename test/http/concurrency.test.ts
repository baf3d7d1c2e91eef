import { expect } from 'chai';
import { permitsFor } from '../../src/http/concurrency.js';

describe('Permits for an expensive kind of request', () => {
  it('leave a permit and places to wait for other keys while one key sends as much as it can', async () => {
    const permits = permitsFor(2);
    const cheap = { actor: 'cheap' };
    const release = await permits.acquire(cheap);
    const sent = Array.from({ length: 200 }, () => permits.acquire(cheap));
    const refused = await Promise.all(
      sent.slice(50).map((each) =>
        each.then(
          () => false,
          () => true,
        ),
      ),
    );
    expect(refused.filter(Boolean)).to.have.length(150);

    const releaseOther = await permits.acquire({ actor: 'other' });
    const next = permits.acquire({ actor: 'other' });
    releaseOther();
    (await next)();
    release();
    expect(await sent[0]).to.be.a('function');
  });

  it('are all shared by callers without a key', async () => {
    const permits = permitsFor(2);
    const [first] = await Promise.all([permits.acquire({ actor: null }), permits.acquire({ actor: null })]);
    const third = permits.acquire({ actor: null });
    first();
    expect(await third).to.be.a('function');
  });
});
