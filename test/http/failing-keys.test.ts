import { expect } from 'chai';
import { addFirstKey, bearer } from '../support/keys.js';
import { refusedUpgrade } from '../support/channel-client.js';
import { NO_RUN } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';

const WRONG = bearer(`council_${'x'.repeat(43)}`);
const RUNS = '/api/runs/';

describe('Keys that fail', () => {
  let service: RunningService;
  let key: string;

  before(async () => {
    service = await startService({ trustedProxies: ['127.0.0.1'] });
    key = await addFirstKey(service.url);
  });
  after(() => service.stop());

  const ask = (address: string, headers: Readonly<Record<string, string>>): Promise<Response> =>
    fetch(service.url + RUNS, { headers: { 'X-Forwarded-For': address, ...headers } });

  it('get 429 from the eleventh failure of an address in a minute, but a valid key never does', async () => {
    for (let count = 0; count < 10; count += 1) expect((await ask('10.0.0.1', WRONG)).status).to.equal(401);
    const slowed = await ask('10.0.0.1', WRONG);
    expect(slowed.status).to.equal(429);
    expect(Number(slowed.headers.get('Retry-After'))).to.be.within(1, 60);
    expect(await slowed.json()).to.have.key('detail');
    expect((await ask('10.0.0.1', bearer(key))).status).to.equal(200);
    expect((await ask('10.0.0.2', WRONG)).status).to.equal(401);
    expect((await ask('10.0.0.1', {})).status).to.equal(401);
  });

  it('are counted per network of an IPv6 address, as requests are', async () => {
    for (let host = 0; host < 10; host += 1) expect((await ask(`2001:db8::${host}`, WRONG)).status).to.equal(401);
    expect((await ask('2001:db8::a', WRONG)).status).to.equal(429);
    expect((await ask('2001:db8:0:1::a', WRONG)).status).to.equal(401);
  });

  it('are counted together for headers, sockets and the sign-in', async () => {
    const from = { 'X-Forwarded-For': '10.0.0.3' };
    const signIn = async (text: string): Promise<number> => {
      const headers = { 'Content-Type': 'application/json', ...from };
      const body = JSON.stringify({ key: text });
      return (await fetch(`${service.url}/api/session`, { method: 'POST', headers, body })).status;
    };
    for (let count = 0; count < 9; count += 1) expect(await signIn('wrong')).to.equal(401);
    const socket = `/ws/council/${NO_RUN}`;
    expect((await refusedUpgrade(service.url, socket, { ...from, ...WRONG })).status).to.equal(401);
    expect((await refusedUpgrade(service.url, socket, { ...from, ...WRONG })).status).to.equal(429);
    expect((await ask('10.0.0.3', WRONG)).status).to.equal(429);
    expect(await signIn('wrong')).to.equal(429);
    expect(await signIn(key)).to.equal(200);
  });

  it('are not counted for a request without a key', async () => {
    for (let count = 0; count < 20; count += 1) expect((await ask('10.0.0.4', {})).status).to.equal(401);
    expect((await ask('10.0.0.4', { Authorization: 'Basic YTpi' })).status).to.equal(401);
    expect((await ask('10.0.0.4', WRONG)).status).to.equal(401);
  });
});
