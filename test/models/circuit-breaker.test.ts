import { expect } from 'chai';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { ModelFailed, type ModelFailureKind } from '../../src/errors.js';
import { boundedModel, type BoundedModel } from '../../src/models/bounded.js';
import type { ModelAnswer, ModelRequest } from '../../src/models/port.js';
import { nodeWith, requestFor } from '../support/prompt-inputs.js';
import { manualSystem, type ManualSystem } from '../support/manual-system.js';
import { rejectionOf } from '../support/rejection.js';
import type { Reply } from '../support/scripted-model.js';
import { scriptedModel, type ScriptedModel } from '../support/scripted-model.js';

const BUDGET_MS = 120_000;

const out = (retryAfterMs?: number, kind: ModelFailureKind = 'connection_refused'): Reply => ({
  error: new ModelFailed('Refused', { kind, retryable: true, ...(retryAfterMs !== undefined && { retryAfterMs }) }),
});

interface Asking {
  readonly runId?: string;
  readonly model?: string;
  /** Seconds after the start at which the outage was recorded that the caller waits out; null: it knows of none. */
  readonly since?: number | null;
  readonly budgetMs?: number;
  readonly signal?: AbortSignal;
  readonly beforeRepeat?: NonNullable<ModelRequest['beforeRepeat']>;
}

describe('boundedModel: outages', () => {
  let system: ManualSystem;
  let model: ScriptedModel;
  let bounded: BoundedModel;
  /** What the server does now. */
  let reply: (request: ModelRequest) => Reply;
  /** When each call was made, in ms. */
  let madeAt: number[];
  /** What the service reports of the servers. */
  let reports: string[];

  const isUp = (): Reply => ({ text: 'An answer' });
  beforeEach(() => {
    system = manualSystem();
    madeAt = [];
    reports = [];
    reply = () => out();
    model = scriptedModel((request) => {
      madeAt.push(Math.round(system.monotonicMs()));
      return reply(request);
    });
    bounded = withBounds({});
  });
  afterEach(() => expect(system.timers()).to.equal(0));

  function withBounds({ maxCalls = 1_000, outageMs = BUDGET_MS }): BoundedModel {
    const onOutage = (name: string, failure: ModelFailed | null): void =>
      void reports.push(`${name} ${failure === null ? 'is back' : failure.data.kind}`);
    return boundedModel(model, { maxCalls, outageMs, system, onOutage });
  }

  function ask({
    runId = 'a',
    model: name,
    since = null,
    budgetMs = BUDGET_MS,
    ...call
  }: Asking): Promise<ModelAnswer> {
    const { signal = new AbortController().signal, beforeRepeat } = call;
    const outage = since === null ? null : { since: new Date(START_MS + since * 1000).toISOString(), budgetMs };
    const hooks = beforeRepeat !== undefined && { beforeRepeat };
    const request = {
      ...requestFor(nodeWith(), { topic: runId }),
      ...(name !== undefined && { model: name }),
      ...hooks,
    };
    const terms = { runId, timeoutMs: 60_000, outage, signal };
    return bounded.ask(request, terms);
  }

  const failureOf = async (asked: Promise<unknown>): Promise<ModelFailed> => {
    const error = await rejectionOf(asked);
    if (!(error instanceof ModelFailed)) throw new Error('It was not rejected with ModelFailed', { cause: error });
    return error;
  };

  /** Moves the clock on in small steps, in which everything is done that can be. */
  const pass = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += 50) {
      await nextTurn();
      system.advance(50);
    }
    await nextTurn();
  };

  for (const kind of ['connection_refused', 'connection_lost', 'host_unknown', 'unreachable'] as const) {
    it(`begin with a connection that fails: ${kind}`, async () => {
      reply = () => out(undefined, kind);
      expect((await failureOf(ask({}))).data).to.deep.equal({ kind, retryable: true, outageMs: BUDGET_MS });
    });
  }

  for (const kind of ['bad_gateway', 'unavailable', 'overloaded'] as const) {
    it(`begin with a server that says so: ${kind}`, async () => {
      reply = () => out(2_000, kind);
      const expected = { kind, retryable: true, outageMs: BUDGET_MS, retryAfterMs: 2_000 };
      expect((await failureOf(ask({}))).data).to.deep.equal(expected);
    });
  }

  for (const kind of ['server_error', 'timeout', 'gateway_timeout', 'unreadable_answer'] as const) {
    it(`do not begin with a failure of a server that can be reached: ${kind}`, async () => {
      reply = () => out(undefined, kind);
      expect((await failureOf(ask({}))).data).to.deep.equal({ kind, retryable: true });
      reply = isUp;
      expect((await ask({})).text).to.equal('An answer');
    });
  }

  describe('by a rate limit', () => {
    const limited = (retryAfterMs?: number): Reply => out(retryAfterMs, 'rate_limited');
    const gaps = (): readonly number[] => madeAt.slice(1).map((at, index) => at - (madeAt[index] ?? 0));

    it('begin with the refusal, and are waited out with waits that grow from one second to thirty', async () => {
      reply = () => limited();
      expect((await failureOf(ask({}))).data).to.deep.equal({
        kind: 'rate_limited',
        retryable: true,
        outageMs: BUDGET_MS,
      });
      const waiting = ask({ since: 0 });
      await pass(100_000);
      for (const [index, gap] of gaps().entries()) {
        const longestMs = Math.min(30_000, 2_000 * 2 ** index);
        expect(gap, `wait ${index + 1}`).to.be.within(longestMs / 2, longestMs + 100);
      }
      reply = isUp;
      await pass(30_000);
      expect((await waiting).text).to.equal('An answer');
    });

    it('are waited as long as the server asks', async () => {
      reply = () => limited(7_000);
      expect((await failureOf(ask({}))).data.retryAfterMs).to.equal(7_000);
      const waiting = ask({ since: 0 });
      await pass(6_900);
      expect(madeAt).to.have.length(1);
      reply = isUp;
      await pass(200);
      expect((await waiting).text).to.equal('An answer');
    });

    it('share one budget among all runs, from the first refusal on', async () => {
      reply = () => limited();
      await failureOf(ask({ runId: 'a' }));
      await pass(80_000);
      const late = await failureOf(ask({ runId: 'b' }));
      expect(late.data.outageMs).to.be.within(BUDGET_MS - 81_000, BUDGET_MS - 79_000);
      const both = [ask({ runId: 'a', since: 0 }), ask({ runId: 'b', since: 80 })].map(failureOf);
      await pass(45_000);
      for (const { data, message } of await Promise.all(both)) {
        expect(data).to.deep.equal({ kind: 'rate_limited', retryable: false });
        expect(message).to.include('refused calls because of its rate limit');
      }
    });

    it('fail a call without a time if the shared budget has ended before it waited', async () => {
      reply = () => limited();
      await failureOf(ask({ runId: 'a' }));
      const waiting = failureOf(ask({ runId: 'a', since: 0 }));
      await pass(BUDGET_MS + 5_000);
      await waiting;
      const late = failureOf(ask({ runId: 'b' }));
      await pass(31_000);
      expect(await late).to.have.property(
        'message',
        'Model "scripted-1" refused calls because of its rate limit: Refused',
      );
    });

    it('ask the server once for each call that comes after the shared budget, unless it asked to wait', async () => {
      reply = () => limited();
      await failureOf(ask({ runId: 'a' }));
      const waiting = failureOf(ask({ runId: 'a', since: 0 }));
      await pass(BUDGET_MS + 5_000);
      await waiting;
      const before = madeAt.length;
      await pass(100);
      reply = () => limited(20_000);
      expect((await failureOf(ask({ runId: 'b' }))).data).to.include({ kind: 'rate_limited', retryable: false });
      expect(madeAt).to.have.length(before + 1);
      await pass(100);
      await failureOf(ask({ runId: 'c' }));
      expect(madeAt, 'the server asked to wait').to.have.length(before + 1);
      await pass(20_000);
      reply = isUp;
      expect((await ask({ runId: 'd' })).text).to.equal('An answer');
    });

    it('start the shared budget at the first refusal, not at the outage before it', async () => {
      reply = () => out();
      await failureOf(ask({ runId: 'a' }));
      const waiting = ask({ runId: 'a', since: 0 });
      await pass(80_000);
      reply = () => limited();
      await pass(20_000);
      expect((await failureOf(ask({ runId: 'b' }))).data.outageMs).to.be.within(BUDGET_MS - 20_000, BUDGET_MS);
      const both = [waiting, ask({ runId: 'b', since: 100 })];
      await pass(60_000);
      reply = isUp;
      await pass(31_000);
      expect((await Promise.all(both)).map(({ text }) => text)).to.deep.equal(['An answer', 'An answer']);
    });

    it('start the shared budget again after an answer to a call that began before the refusal', async () => {
      reply = () => 'hold';
      const before = ask({ runId: 'before' });
      await model.called(1);
      reply = () => limited();
      await failureOf(ask({ runId: 'a' }));
      const waiting = ask({ runId: 'a', since: 0 });
      await pass(50_000);
      model.held[0]?.release('An answer');
      await before;
      await pass(80_000);
      expect((await failureOf(ask({ runId: 'b' }))).data.outageMs).to.be.within(BUDGET_MS - 80_000, BUDGET_MS - 45_000);
      reply = isUp;
      await pass(31_000);
      expect((await waiting).text).to.equal('An answer');
    });

    it('stay the reason when a probe gets no answer', async () => {
      reply = () => limited();
      await failureOf(ask({}));
      reply = () => 'hold';
      const hangs = failureOf(ask({ runId: 'hangs', since: 0 }));
      await pass(3_000);
      model.held[0]?.fail(new ModelFailed('No answer', { kind: 'timeout', retryable: true }));
      expect((await failureOf(ask({ runId: 'b' }))).data).to.include({ kind: 'rate_limited', retryable: true });
      await pass(BUDGET_MS);
      reply = () => limited();
      model.held[0]?.fail(new ModelFailed('No answer', { kind: 'timeout', retryable: true }));
      await pass(31_000);
      expect((await hangs).data).to.deep.equal({ kind: 'rate_limited', retryable: false });
    });

    it('have a new budget after an answer', async () => {
      reply = () => limited();
      await failureOf(ask({}));
      const waiting = ask({ since: 0 });
      await pass(50_000);
      reply = isUp;
      await pass(30_000);
      await waiting;
      reply = () => limited();
      expect((await failureOf(ask({}))).data.outageMs).to.equal(BUDGET_MS);
    });
  });

  it('are failures like any other where they are not to be waited out', async () => {
    bounded = withBounds({ outageMs: 0 });
    for (const since of [null, 0]) {
      expect((await failureOf(ask({ since }))).data).to.deep.equal({ kind: 'connection_refused', retryable: true });
    }
    expect(madeAt).to.deep.equal([0, 0]);
  });

  it('are waited out with waits that grow to ten seconds, jittered', async () => {
    await failureOf(ask({}));
    const asked = ask({ since: 0 });
    await pass(60_000);
    const waits = madeAt.slice(1).map((at, index) => at - (madeAt[index] ?? 0));
    const longest = [500, 1_000, 2_000, 4_000, 8_000, ...waits.slice(5).map(() => 10_000)];
    expect(waits).to.have.length.greaterThan(8);
    waits.forEach((wait, index) => expect(wait).to.be.within((longest[index] ?? 0) / 2 - 50, longest[index] ?? 0));
    expect(new Set(waits).size).to.be.greaterThan(waits.length / 2);
    reply = isUp;
    await pass(10_000);
    expect((await asked).text).to.equal('An answer');
    expect(reports).to.deep.equal(['scripted-1 connection_refused', 'scripted-1 is back']);
  });

  it('end for a caller with its budget, which names the model and how long it was unreachable', async () => {
    await failureOf(ask({}));
    const asked = failureOf(ask({ since: 0 }));
    await pass(BUDGET_MS);
    const failure = await asked;
    expect(failure.message).to.match(/^Model "scripted-1" was unreachable for 120\.\d s: Refused$/);
    expect(failure.data).to.deep.equal({ kind: 'connection_refused', retryable: false });
    expect(madeAt.at(-1)).to.be.within(BUDGET_MS - 50, BUDGET_MS);
  });

  it('count from when they were recorded, also by a clock that went back', async () => {
    await failureOf(ask({}));
    const [late, early] = [failureOf(ask({ since: -119 })), failureOf(ask({ since: 3_600 }))];
    await pass(1_000);
    expect((await late).message).to.include('for 120.0 s');
    expect(bounded.unreachable()).to.deep.equal(['scripted-1']);
    await pass(BUDGET_MS);
    expect((await early).message).to.include('unreachable: ');
  });

  it('are probed once more if the budget has ended while no caller could probe', async () => {
    reply = isUp;
    expect((await ask({ since: -500 })).text).to.equal('An answer');
    reply = () => out();
    expect((await failureOf(ask({ since: -500 }))).message).to.include('unreachable for 500.0 s');
    expect(madeAt).to.have.length(2);
  });

  it('keep a caller waiting as long as the server asks, but no longer than its budget', async () => {
    reply = () => out(30_000);
    await failureOf(ask({}));
    const [patient, hasty] = [ask({ runId: 'a', since: 0 }), failureOf(ask({ runId: 'b', since: 0, budgetMs: 5_000 }))];
    await pass(5_000);
    expect((await hasty).message).to.include('unreachable for 5.0 s');
    reply = isUp;
    await pass(24_000);
    expect(madeAt).to.deep.equal([0]);
    await pass(1_100);
    expect((await patient).text).to.equal('An answer');
  });

  it('keep a caller waiting for at most a minute, whatever the server asks', async () => {
    reply = () => out(86_400_000);
    await failureOf(ask({}));
    reply = isUp;
    const asked = ask({ since: 0 });
    await pass(60_100);
    expect((await asked).text).to.equal('An answer');
  });

  it('fail a caller that meets a known outage at once, without a call', async () => {
    await failureOf(ask({ runId: 'a' }));
    const { message, data } = await failureOf(ask({ runId: 'b' }));
    expect({ message, ...data }).to.include({ message: 'Refused', outageMs: BUDGET_MS, retryable: true });
    expect(madeAt).to.deep.equal([0]);
  });

  it('let one caller probe while the others wait, and all go on after an answer', async () => {
    const runs = Array.from({ length: 200 }, (_, index) => `run ${index}`);
    await Promise.all(runs.map((runId) => failureOf(ask({ runId }))));
    const before = madeAt.length;
    const asked = runs.map((runId) => ask({ runId, since: 0 }));
    await pass(8_000);
    expect(madeAt.length - before).to.be.lessThan(8);
    reply = () => 'hold';
    await pass(8_000);
    expect(model.held).to.have.length(1);
    reply = isUp;
    model.held[0]?.release('Back');
    await Promise.all(asked);
  });

  it('fail all callers whose budgets have ended with one last probe', async () => {
    await failureOf(ask({}));
    const asked = Array.from({ length: 100 }, (_, index) => failureOf(ask({ runId: String(index), since: 0 })));
    await pass(BUDGET_MS - 100);
    const before = madeAt.length;
    await pass(200);
    await Promise.all(asked);
    expect(madeAt.length - before).to.be.within(1, 2);
  });

  it('have every caller probe in turn', async () => {
    const runs = ['a', 'b', 'c'];
    await failureOf(ask({}));
    const asked = runs.map((runId) => ask({ runId, since: 0 }));
    await pass(20_000);
    expect(model.requests.slice(1, 7).map(({ promptInput }) => promptInput.topic)).to.deep.equal(
      [...runs, ...runs].slice(0, model.requests.length - 1),
    );
    reply = isUp;
    await pass(11_000);
    await Promise.all(asked);
  });

  it('hand the probe on when the caller that probes is withdrawn', async () => {
    await failureOf(ask({}));
    reply = () => 'hold';
    const leaving = new AbortController();
    const [gone, next] = [
      failureOf(ask({ runId: 'a', since: 0, signal: leaving.signal })),
      ask({ runId: 'b', since: 0 }),
    ];
    await pass(500);
    expect(model.held.map(({ request }) => request.promptInput.topic)).to.deep.equal(['a']);
    leaving.abort();
    await pass(50);
    expect((await gone).data.kind).to.equal('aborted');
    expect(model.held.map(({ request }) => request.promptInput.topic)).to.deep.equal(['a', 'b']);
    model.held[1]?.release('Back');
    expect((await next).text).to.equal('Back');
    model.held[0]?.release();
  });

  it('let a caller go at once that is withdrawn while it waits, also just before it goes on', async () => {
    await failureOf(ask({}));
    const [waiting, goingOn] = [new AbortController(), new AbortController()];
    const looks = ask({ runId: 'looks', since: 0 });
    const first = failureOf(ask({ since: 0, signal: waiting.signal }));
    const second = failureOf(ask({ since: 0, signal: goingOn.signal }));
    waiting.abort();
    expect((await first).data.kind).to.equal('aborted');
    reply = () => 'hold';
    await pass(500);
    model.held[0]?.release();
    await looks;
    goingOn.abort();
    expect((await second).data.kind).to.equal('aborted');
    expect(madeAt).to.have.length(2);
  });

  it('do not fail a caller whose budget ends during a probe that is then answered', async () => {
    await failureOf(ask({}));
    reply = () => 'hold';
    const [looks, waits] = [ask({ runId: 'a', since: 0 }), ask({ runId: 'b', since: 0, budgetMs: 5_000 })];
    await pass(9_000);
    reply = isUp;
    model.held[0]?.release('At last');
    await pass(1_100);
    expect([(await looks).text, (await waits).text]).to.deep.equal(['At last', 'An answer']);
  });

  it('fail no waiting caller for one probe that hangs: ten seconds later the next one probes', async () => {
    const budgetMs = 20_000;
    const runs = Array.from({ length: 10 }, (_, index) => `run ${index}`);
    await failureOf(ask({}));
    reply = () => 'hold';
    const hangs = failureOf(ask({ runId: 'hangs', since: 0, budgetMs }));
    const asked = runs.map((runId) => ask({ runId, since: 0, budgetMs }));
    await pass(1_000);
    reply = isUp;
    await pass(8_000);
    expect(madeAt).to.have.length(2);
    await pass(3_000);
    await Promise.all(asked);
    expect(bounded.unreachable()).to.deep.equal([]);
    reply = () => out();
    await failureOf(ask({ runId: 'later' }));
    expect(bounded.unreachable()).to.deep.equal(['scripted-1']);
    model.held[0]?.fail(new ModelFailed('No answer', { kind: 'timeout', retryable: true }));
    await pass(8_000);
    expect((await hangs).data, 'it waits the next outage out').to.include({ kind: 'connection_refused' });
    expect(bounded.unreachable()).to.deep.equal(['scripted-1']);
  });

  for (const kind of ['timeout', 'network_error'] as const) {
    it(`go on for the caller too whose probe ends without an answer: ${kind}`, async () => {
      await failureOf(ask({}));
      reply = () => 'hold';
      const looks = ask({ runId: 'looks', since: 0 });
      const expires = failureOf(ask({ runId: 'expires', since: 0, budgetMs: 5_000 }));
      const waits = ask({ runId: 'waits', since: 0 });
      await pass(9_000);
      expect(madeAt).to.have.length(2);
      model.held[0]?.fail(new ModelFailed('No answer', { kind, retryable: true }));
      await pass(50);
      expect((await expires).data).to.deep.equal({ kind: 'connection_refused', retryable: false });
      expect(madeAt).to.have.length(2);
      await pass(1_000);
      expect(model.requests.map(({ promptInput }) => promptInput.topic)).to.deep.equal(['a', 'looks', 'waits']);
      expect(bounded.unreachable()).to.deep.equal(['scripted-1']);
      reply = isUp;
      model.held.at(-1)?.release('Back');
      expect((await waits).text).to.equal('Back');
      expect((await looks).text).to.equal('An answer');
      expect(bounded.unreachable()).to.deep.equal([]);
    });

    it(`end for a caller whose probe ends without an answer after its budget: ${kind}`, async () => {
      await failureOf(ask({}));
      reply = () => 'hold';
      const looks = failureOf(ask({ runId: 'looks', since: 0, budgetMs: 5_000 }));
      await pass(9_000);
      model.held[0]?.fail(new ModelFailed('No answer', { kind, retryable: true }));
      const failure = await looks;
      expect(failure.message).to.match(/was unreachable for 9\.\d s: Refused/);
      expect(failure.data).to.deep.equal({ kind: 'connection_refused', retryable: false, isUnsent: false });
    });

    it(`begin for a caller who knew of none and whose call ends without an answer: ${kind}`, async () => {
      reply = () => 'hold';
      const early = failureOf(ask({ runId: 'early' }));
      await pass(50);
      reply = () => out();
      await failureOf(ask({}));
      model.held[0]?.fail(new ModelFailed('No answer', { kind, retryable: true }));
      expect((await early).data).to.include({ kind: 'connection_refused', outageMs: BUDGET_MS, isUnsent: false });
    });
  }

  for (const [kind, settled] of [
    ['connection_lost', 2],
    ['bad_gateway', 2],
    ['timeout', 2],
    ['unavailable', 0],
    ['overloaded', 0],
    ['rate_limited', 0],
    ['connection_refused', 0],
  ] as const) {
    const how = settled === 0 ? 'do not settle' : 'settle';
    it(`${how} a probe before the next one that ends by ${kind}`, async () => {
      await failureOf(ask({}));
      reply = () => out(undefined, kind);
      const usages: unknown[] = [];
      const beforeRepeat = async (usage: unknown): Promise<void> => void usages.push(usage);
      const asked = ask({ since: 0, beforeRepeat });
      while (madeAt.length < 3) await pass(50);
      reply = isUp;
      await pass(31_000);
      expect((await asked).text).to.equal('An answer');
      expect(usages).to.deep.equal(Array(settled).fill(null));
    });
  }

  it('make no further probe if it may not be made', async () => {
    await failureOf(ask({}));
    reply = () => out(undefined, 'connection_lost');
    const asked = rejectionOf(ask({ since: 0, beforeRepeat: () => Promise.reject(new Error('No budget')) }));
    await pass(31_000);
    expect(await asked).to.have.property('message', 'No budget');
    expect(madeAt).to.have.length(2);
  });

  it('mark the failure of a call that was not made', async () => {
    reply = () => out(undefined, 'unavailable');
    expect((await failureOf(ask({}))).data).to.not.have.property('isUnsent');
    expect((await failureOf(ask({}))).data).to.include({ isUnsent: true, outageMs: BUDGET_MS });
  });

  it('revoke the pass of a call that waited for a slot when the server went out', async () => {
    bounded = withBounds({ maxCalls: 1 });
    reply = () => 'hold';
    const asked = ['a', 'b', 'c'].map((runId) => failureOf(ask({ runId })));
    await model.called(1);
    model.held[0]?.fail(new ModelFailed('Reset', { kind: 'connection_lost', retryable: true }));
    for (const failure of await Promise.all(asked)) expect(failure.data.outageMs).to.equal(BUDGET_MS);
    expect(madeAt).to.have.length(1);
  });

  it('of one model leave the others alone', async () => {
    reply = ({ model: name }) => (name === 'sick' ? out() : isUp());
    await failureOf(ask({ model: 'sick' }));
    expect((await ask({ model: 'well' })).text).to.equal('An answer');
    expect((await ask({})).text).to.equal('An answer');
    expect(bounded.unreachable()).to.deep.equal(['sick']);
  });

  it('are forgotten soon when no caller waits any more', async () => {
    await failureOf(ask({}));
    await pass(11_000);
    expect(bounded.unreachable()).to.deep.equal([]);
    reply = () => 'hold';
    const asked = ['a', 'b'].map((runId) => ask({ runId }));
    await model.called(3);
    [...model.held].forEach((call) => call.release());
    await Promise.all(asked);
  });
});

const START_MS = Date.parse('2026-01-01T00:00:00.000Z');
