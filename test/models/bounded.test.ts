import { expect } from 'chai';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { ModelFailed } from '../../src/errors.js';
import { boundedModel, type BoundedModel } from '../../src/models/bounded.js';
import type { ModelAnswer } from '../../src/models/port.js';
import { nodeWith, requestFor } from '../support/prompt-inputs.js';
import { manualSystem, type ManualSystem } from '../support/manual-system.js';
import { scriptedModel, type Script, type ScriptedModel } from '../support/scripted-model.js';

interface Bench {
  readonly system: ManualSystem;
  readonly model: ScriptedModel;
  readonly bounded: BoundedModel;
  /** Asks on behalf of a run; each call has its own topic. */
  ask(runId: string, topic?: string, signal?: AbortSignal): Promise<ModelAnswer>;
  /** Asks another model than the default one. */
  askModel(runId: string, model: string): Promise<ModelAnswer>;
  /** The topics of all calls that got a slot so far. */
  topics(): string[];
}

function bench(maxCalls: number, script: Script = () => 'hold'): Bench {
  const system = manualSystem();
  const model = scriptedModel(script);
  const bounded = boundedModel(model, { maxCalls, outageMs: 0, system });
  return {
    system,
    model,
    bounded,
    ask: (runId, topic = runId, signal = new AbortController().signal) =>
      bounded.ask(requestFor(nodeWith(), { topic }), { runId, timeoutMs: 1000, outage: null, signal }),
    askModel(runId, name) {
      const terms = { runId, timeoutMs: 1000, outage: null, signal: new AbortController().signal };
      return bounded.ask({ ...requestFor(nodeWith(), { topic: runId }), model: name }, terms);
    },
    topics: () => model.requests.map(({ promptInput }) => promptInput.topic),
  };
}

/** How many calls wait for a slot. */
function waitingFor(bounded: BoundedModel): number {
  return bounded.uses().reduce((sum, use) => sum + use.waiting, 0);
}

async function rejection(promise: Promise<unknown>): Promise<ModelFailed> {
  const error = await promise.then(
    () => null,
    (reason: unknown) => reason,
  );
  if (!(error instanceof ModelFailed)) throw new Error('It was not rejected with ModelFailed', { cause: error });
  return error;
}

describe('boundedModel: slots', () => {
  it('shows the model it bounds', () => {
    expect(bench(1).bounded).to.include({ defaultModel: 'scripted-1' });
  });

  it('lets no more calls through than there are slots', async () => {
    const { ask, bounded, model } = bench(2);
    const calls = ['a', 'b', 'c'].map((run) => ask(run));
    await model.called(2);
    expect(waitingFor(bounded)).to.equal(1);
    model.held[0]?.release();
    await model.called(3);
    expect(waitingFor(bounded)).to.equal(0);
    [...model.held].forEach((call) => call.release());
    await Promise.all(calls);
  });

  it('serves waiting runs in turn, and each run in its own order', async () => {
    const { ask, model, topics } = bench(1);
    const order = ['a1', 'a2', 'a3', 'a4', 'b1', 'b2', 'c1'];
    const calls = order.map((topic) => ask(topic.charAt(0), topic));
    for (let served = 1; served <= order.length; served += 1) {
      await model.called(served);
      model.held[0]?.release();
    }
    await Promise.all(calls);
    expect(topics()).to.deep.equal(['a1', 'a2', 'b1', 'c1', 'a3', 'b2', 'a4']);
  });

  it('gives the slot back when the adapter fails, also when it throws at once', async () => {
    const { ask, model, bounded } = bench(1, (_request, index) => ({ error: new Error(`call ${index}`) }));
    const messages = await Promise.all(['a', 'b'].map((run) => ask(run).catch((error: unknown) => String(error))));
    expect(messages).to.deep.equal(['Error: call 0', 'Error: call 1']);
    const throwing = boundedModel(
      {
        ...model,
        ask: () => {
          throw new Error('at once');
        },
      },
      { maxCalls: 1, outageMs: 0, system: manualSystem() },
    );
    const terms = { runId: 'a', timeoutMs: 1, outage: null, signal: new AbortController().signal };
    for (let round = 0; round < 2; round += 1) {
      expect(await throwing.ask(requestFor(nodeWith()), terms).catch((error: unknown) => String(error))).to.equal(
        'Error: at once',
      );
    }
    expect(waitingFor(bounded)).to.equal(0);
  });
});

describe('boundedModel: slots of one model', () => {
  for (const [maxCalls, held] of [
    [1, 1],
    [2, 2],
    [4, 3],
    [5, 4],
    [64, 48],
  ] as const) {
    it(`are three quarters of ${maxCalls} at most, even if no other call waits: ${held}`, async () => {
      const { model, bounded, askModel } = bench(maxCalls);
      const busy = Array.from({ length: maxCalls + 1 }, (_, index) => askModel(`run ${index}`, 'busy'));
      await nextTurn();
      expect(model.held).to.have.length(held);
      expect(waitingFor(bounded)).to.equal(maxCalls + 1 - held);
      while (model.held.length > 0) {
        [...model.held].forEach((call) => call.release());
        await nextTurn();
      }
      await Promise.all(busy);
    });
  }

  it('leave the others to other models, and come to the run whose turn it is', async () => {
    const { model, askModel } = bench(4);
    const topics = (): string[] => model.held.map(({ request }) => request.promptInput.topic);
    const calls = ['a', 'b', 'c', 'd', 'e'].map((runId) => askModel(runId, 'busy'));
    calls.push(askModel('f', 'other'), askModel('d', 'other'));
    await nextTurn();
    expect(topics()).to.deep.equal(['a', 'b', 'c', 'f']);
    model.held[3]?.release();
    await nextTurn();
    expect(topics()).to.deep.equal(['a', 'b', 'c', 'd']);
    model.held[0]?.release();
    await nextTurn();
    expect(topics()).to.deep.equal(['b', 'c', 'd', 'e']);
    while (model.held.length > 0) {
      [...model.held].forEach((call) => call.release());
      await nextTurn();
    }
    await Promise.all(calls);
  });
});

describe('boundedModel: slots of one provider', () => {
  it('are bounded by the provider itself, and leave the others their slots', async () => {
    const system = manualSystem();
    const model = scriptedModel(() => 'hold');
    const slow = { ...model, maxCalls: new Map([['slow', 2]]) };
    const bounded = boundedModel(slow, { maxCalls: 10, outageMs: 0, system });
    const terms = { runId: 'a', timeoutMs: 1000, outage: null, signal: new AbortController().signal };
    const names = ['slow/a', 'slow/b', 'slow/c', 'fast/a', 'slower/a'];
    const calls = names.map((name) => bounded.ask({ ...requestFor(nodeWith(), { topic: name }), model: name }, terms));
    await model.called(4);
    expect(model.requests.map(({ model: name }) => name)).to.deep.equal(['slow/a', 'slow/b', 'fast/a', 'slower/a']);
    expect(waitingFor(bounded)).to.equal(1);
    model.held[0]?.release();
    await model.called(5);
    for (const held of [...model.held]) held.release();
    await Promise.all(calls);
  });
});

describe('boundedModel: deadline', () => {
  it('aborts and rejects a call that hangs, and gives its slot to the next', async () => {
    const { system, ask, model } = bench(1);
    const hanging = rejection(ask('a'));
    const next = ask('b');
    await model.called(1);
    const stuck = model.held[0];
    system.advance(1000);
    const error = await hanging;
    expect(error.data).to.deep.equal({ kind: 'timeout', retryable: true });
    expect(error.message).to.equal('Cannot get an answer from model "scripted-1": none came within 1000 ms');
    expect(stuck?.signal.aborted).to.equal(true);
    await model.called(2);
    model.held[1]?.release('late but mine');
    expect((await next).text).to.equal('late but mine');
  });

  it('runs from the moment of the slot, not of the question', async () => {
    const { system, ask, model } = bench(1);
    const first = ask('a');
    const second = ask('b');
    await model.called(1);
    system.advance(999);
    model.held[0]?.release();
    await first;
    await model.called(2);
    system.advance(999);
    model.held[0]?.release('in time');
    expect((await second).text).to.equal('in time');
  });

  it('drops what comes after it, an answer or a failure, and frees the slot once', async () => {
    const { system, ask, bounded, model } = bench(1);
    for (const late of ['release', 'fail'] as const) {
      const call = rejection(ask('a'));
      await model.called(model.requests.length + 1);
      system.advance(1000);
      expect((await call).data.kind).to.equal('timeout');
      if (late === 'release') model.held[0]?.release();
      else model.held[0]?.fail(new Error('too late'));
    }
    const [inside, waiting] = [ask('a'), ask('b')];
    await model.called(3);
    expect(waitingFor(bounded)).to.equal(1);
    model.held[0]?.release();
    await model.called(4);
    model.held[0]?.release();
    await Promise.all([inside, waiting]);
  });

  it('leaves no timer behind, however the call ends', async () => {
    const { system, ask, model } = bench(3);
    const abort = new AbortController();
    const calls = [ask('a'), rejection(ask('b')), rejection(ask('c', 'c', abort.signal))];
    await model.called(3);
    expect(system.timers()).to.equal(3);
    const [answered, timedOut] = model.held;
    answered?.release();
    abort.abort();
    await Promise.all([calls[0], calls[2]]);
    expect(system.timers()).to.equal(1);
    system.advance(1000);
    await calls[1];
    timedOut?.release();
    expect(system.timers()).to.equal(0);
  });
});

describe('boundedModel: abort', () => {
  it('refuses an aborted call without asking', async () => {
    const { ask, model } = bench(1);
    expect((await rejection(ask('a', 'a', AbortSignal.abort()))).data.kind).to.equal('aborted');
    expect(model.requests).to.have.length(0);
  });

  it('takes an aborted waiter out of the queue at once', async () => {
    const { ask, bounded, model, topics } = bench(1);
    const abort = new AbortController();
    const first = ask('a');
    const gone = rejection(ask('b', 'gone', abort.signal));
    const last = ask('b', 'last');
    await model.called(1);
    abort.abort();
    expect(waitingFor(bounded)).to.equal(1);
    expect((await gone).data).to.deep.equal({ kind: 'aborted', retryable: true });
    model.held[0]?.release();
    await model.called(2);
    model.held[0]?.release();
    await Promise.all([first, last]);
    expect(topics()).to.deep.equal(['a', 'last']);
  });

  for (let turns = 0; turns < 12; turns += 1) {
    it(`loses no slot when a waiter is aborted ${turns} microtasks after one is given back`, async () => {
      const { ask, bounded, model, topics } = bench(1);
      const abort = new AbortController();
      const first = ask('a');
      const unlucky = rejection(ask('b', 'unlucky', abort.signal));
      const last = ask('c', 'last');
      await model.called(1);
      model.held[0]?.release();
      for (let turn = 0; turn < turns; turn += 1) await Promise.resolve();
      abort.abort();
      expect((await unlucky).data.kind).to.equal('aborted');
      await model.called(topics().includes('unlucky') ? 3 : 2);
      expect(topics().at(-1)).to.equal('last');
      expect(waitingFor(bounded)).to.equal(0);
      model.held.at(-1)?.release();
      await Promise.all([first, last]);
    });
  }

  it('aborts a call under way and frees its slot though the adapter hangs', async () => {
    const { ask, model } = bench(1);
    const abort = new AbortController();
    const call = rejection(ask('a', 'a', abort.signal));
    const next = ask('b');
    await model.called(1);
    abort.abort();
    expect((await call).data.kind).to.equal('aborted');
    expect(model.held[0]?.signal.aborted).to.equal(true);
    await model.called(2);
    model.held[1]?.release();
    await next;
  });
});
