import { expect } from 'chai';
import type { Client, LimitSettings, LimitCheck } from '../../../src/api/access/limits.js';
import { limitsOf } from '../../../src/api/access/limits.js';
import { manualSystem } from '../../support/manual-system.js';

const NONE: LimitSettings = { requests: null, runs: null, unfinishedRuns: null };
const ANN: Client = { actor: 'ann', address: '127.0.0.1' };
const BOB: Client = { actor: 'bob', address: '127.0.0.1' };

/** A burst of ten requests, and two more each second. */
const TEN = { quota: 10, windowSeconds: 5, isSet: false };

describe('Request limits', () => {
  it('grants a burst, refuses the next request, and reports when one more passes', () => {
    const { request } = limitsOf({ ...NONE, requests: TEN }, manualSystem());
    const burst = Array.from({ length: 10 }, () => request(ANN));
    expect(burst.map(isPassed)).to.deep.equal(Array(10).fill(true));
    const { refusal, fields } = request(ANN);
    expect(refusal?.message).to.equal('Too many requests: at most 10 in 5 s; try again in 1 s');
    expect(refusal?.data).to.deep.equal({ status: 429, headers: { 'Retry-After': '1' } });
    expect(fields).to.deep.equal({ 'RateLimit-Policy': '"requests";q=10;w=5', RateLimit: '"requests";r=0;t=1' });
  });

  it('refills quota at an even rate, up to the burst', () => {
    const system = manualSystem();
    const { request } = limitsOf({ ...NONE, requests: TEN }, system);
    const granted = (): number => Array.from({ length: 30 }, () => request(ANN)).filter(isPassed).length;
    expect(granted()).to.equal(10);
    system.advance(499);
    expect(granted()).to.equal(0);
    system.advance(1);
    expect(granted()).to.equal(1);
    system.advance(3_600_000);
    expect(granted()).to.equal(10);
  });

  it('grants the full quota if the rate is a fraction', () => {
    const { request } = limitsOf({ ...NONE, requests: { ...TEN, quota: 7, windowSeconds: 60 } }, manualSystem());
    expect(Array.from({ length: 9 }, () => request(ANN)).filter(isPassed)).to.have.length(7);
  });

  it('reports the rest of the quota and whole seconds until more', () => {
    const { request } = limitsOf({ ...NONE, requests: { ...TEN, quota: 4, windowSeconds: 10 } }, manualSystem());
    const told = Array.from({ length: 5 }, () => request(ANN).fields['RateLimit']);
    expect(told).to.deep.equal([3, 2, 1, 0, 0].map((left) => `"requests";r=${left};t=3`));
  });

  it('counts each key separately, from any address', () => {
    const { request } = limitsOf({ ...NONE, requests: { ...TEN, quota: 1 } }, manualSystem());
    expect([ANN, BOB, { ...ANN, address: '10.0.0.1' }].map((asker) => isPassed(request(asker)))).to.deep.equal([
      ...[true, true, false],
    ]);
  });

  it('counts each address without a key, and each IPv6 network of 64 bits', () => {
    const { request } = limitsOf({ ...NONE, requests: { ...TEN, quota: 1 } }, manualSystem());
    const passes = (address: string): boolean => isPassed(request({ actor: null, address }));
    expect(['10.0.0.1', '10.0.0.2', '10.0.0.1', '::ffff:10.0.0.2'].map(passes)).to.deep.equal([
      ...[true, true, false, false],
    ]);
    expect(['2001:db8::1', '2001:DB8:0:0:ffff::2', '2001:db8:0:1::1'].map(passes)).to.deep.equal([true, false, true]);
  });

  it('has no limit for a loopback address without a key, unless it is set', () => {
    const once = { quota: 1, windowSeconds: 60 };
    for (const address of ['127.0.0.1', '127.1.2.3', '::1', '::ffff:127.0.0.1']) {
      for (const isSet of [false, true]) {
        const { request } = limitsOf({ ...NONE, requests: { ...once, isSet } }, manualSystem());
        request({ actor: null, address });
        const { fields, refusal } = request({ actor: null, address });
        expect([fields, refusal === null], address).to.deep.equal([isSet ? fields : {}, !isSet]);
      }
    }
  });

  it('remembers ten thousand addresses, and a busy key among them', () => {
    const { request } = limitsOf({ ...NONE, requests: { ...TEN, quota: 20_000, windowSeconds: 1e9 } }, manualSystem());
    const left = (asker: Client): string | undefined => request(asker).fields['RateLimit']?.split(';')[1];
    const first = { actor: null, address: '10.0.0.1' };
    left(first);
    for (let place = 0; place < 10_000; place += 1) {
      request({ actor: null, address: `11.0.${place >> 8}.${place & 255}` });
      request(ANN);
    }
    expect([left(first), left(ANN)]).to.deep.equal(['r=19999', 'r=9999']);
  });
});

describe('Limits of runs', () => {
  const twoAtOnce: LimitSettings = { ...NONE, unfinishedRuns: { quota: 2, isSet: false } };

  it('counts the runs of a key until they have ended', () => {
    const { run, ended } = limitsOf(twoAtOnce, manualSystem());
    expect(['a', 'b', 'c'].map((runId) => isPassed(run(ANN, runId)))).to.deep.equal([true, true, false]);
    expect(isPassed(run(BOB, 'd'))).to.equal(true);
    ended('a');
    ended('a');
    expect(['e', 'f'].map((runId) => isPassed(run(ANN, runId)))).to.deep.equal([true, false]);
  });

  it('counts a run once, even if its start is repeated', () => {
    const { run } = limitsOf({ ...twoAtOnce, runs: { quota: 2, windowSeconds: 60, isSet: false } }, manualSystem());
    const askedFor = ['a', 'a', 'a', 'b', 'c'].map((runId) => isPassed(run(ANN, runId)));
    expect(askedFor).to.deep.equal([true, true, true, true, false]);
  });

  it('reports both policies, and refuses a request that exceeds one of them', () => {
    const { run, ended } = limitsOf(
      { ...twoAtOnce, runs: { quota: 3, windowSeconds: 60, isSet: false } },
      manualSystem(),
    );
    expect(run(ANN, 'a').fields).to.deep.equal({
      'RateLimit-Policy': '"runs";q=3;w=60, "unfinished-runs";q=2;qu="concurrent-requests"',
      RateLimit: '"runs";r=2;t=20, "unfinished-runs";r=1;t=5',
    });
    run(ANN, 'b');
    expect(run(ANN, 'c').refusal?.message).to.equal('Too many runs unfinished: at most 2 at once; try again in 5 s');
    ended('a');
    expect(isPassed(run(ANN, 'd'))).to.equal(true);
    ended('b');
    expect(run(ANN, 'e').refusal?.message).to.equal('Too many runs started: at most 3 in 60 s; try again in 20 s');
  });
});

function isPassed({ refusal }: LimitCheck): boolean {
  return refusal === null;
}
