import { expect } from 'chai';
import {
  inTime,
  settledWithin,
  untilDeadline,
  backoffMs,
  providerWaitMs,
  retry,
} from '../../src/system/async/deadline.js';
import { semaphore, KeyedSequencer } from '../../src/system/async/tasks.js';
import type { ManualSystem } from '../support/manual-system.js';
import { manualSystem } from '../support/manual-system.js';
import { rejectionOf } from '../support/rejection.js';

const never = new Promise<never>(() => undefined);
const late = (): Error => new Error('late');

describe('Work with a deadline', () => {
  let system: ManualSystem;
  let outer: AbortController;
  beforeEach(() => {
    system = manualSystem();
    outer = new AbortController();
  });

  it('returns its result, and leaves no timer', async () => {
    expect(await inTime(() => Promise.resolve(1), { system, maxMs: 10, late })).to.equal(1);
    expect(system.timers()).to.equal(0);
  });

  it('rejects at the deadline and aborts, even if the work never settles', async () => {
    let signal: AbortSignal | undefined;
    const working = inTime(
      (call) => {
        signal = call.signal;
        return never;
      },
      { system, maxMs: 10, late },
    );
    system.advance(10);
    expect(await rejectionOf(working)).to.have.property('message', 'late');
    expect(signal?.aborted).to.equal(true);
  });

  it('rejects with the reason of an outer signal, also before it begins', async () => {
    const options = { system, maxMs: 10, late, signal: outer.signal };
    const working = inTime(() => never, options);
    outer.abort(new Error('left'));
    expect(await rejectionOf(working)).to.have.property('message', 'left');
    const begun = inTime(() => expect.fail('it began'), { ...options, aborted: () => new Error('gone') });
    expect(await rejectionOf(begun)).to.have.property('message', 'gone');
    expect(system.timers()).to.equal(0);
  });

  it('may end by itself when its signal aborts', async () => {
    const working = untilDeadline(
      (signal) => new Promise((resolve) => signal.addEventListener('abort', () => resolve('so far'))),
      { system, maxMs: 10, signal: outer.signal },
    );
    system.advance(10);
    expect(await working).to.equal('so far');
  });

  it('is awaited no longer than maxMs', async () => {
    const waiting = settledWithin(never, { system, maxMs: 10 });
    system.advance(10);
    await waiting;
    await settledWithin(Promise.resolve(), { system, maxMs: 10 });
    expect(system.timers()).to.equal(0);
  });
});

describe('A retry', () => {
  it('waits twice as long after each failure, up to the longest wait', () => {
    const waits = [1, 2, 3, 4, 5].map((failures) => backoffMs({ firstMs: 50, longestMs: 300 }, failures));
    expect(waits).to.deep.equal([50, 100, 200, 300, 300]);
  });

  it('honours the wait that a provider asks for, up to a minute', () => {
    expect(providerWaitMs(3, undefined, 0.5)).to.equal(1_000);
    expect(providerWaitMs(3, 5_000, 0.5)).to.equal(5_000);
    expect(providerWaitMs(3, 3_600_000, 0.5)).to.equal(60_000);
  });

  it('ends with success, with an error that ends the retries, or with its signal', async () => {
    const system = { after: (_: number, callback: () => void) => (queueMicrotask(callback), () => undefined) };
    const ending = new AbortController();
    const failing = (times: number) => () => (times-- > 0 ? Promise.reject(late()) : Promise.resolve('done'));
    const policy = { system, signal: ending.signal };
    const waitMs = (_: unknown, failures: number): number | null => (failures < 3 ? 1 : null);
    expect(await retry(failing(2), waitMs, policy)).to.equal('done');
    expect(await rejectionOf(retry(failing(3), waitMs, policy))).to.have.property('message', 'late');
    ending.abort();
    expect(await rejectionOf(retry(failing(1), waitMs, policy))).to.have.property('message', 'late');
  });
});

describe('A semaphore', () => {
  it('grants free permits at once and later ones in order, and refuses one task more than may wait', async () => {
    const permits = semaphore(1, { maxWaiting: 2, full: () => new Error('full') });
    const entered: number[] = [];
    const release = await permits.acquire();
    const waiting = [1, 2].map(async (each) => {
      const leave = await permits.acquire();
      entered.push(each);
      leave();
    });
    expect(await rejectionOf(permits.acquire())).to.have.property('message', 'full');
    expect(entered).to.deep.equal([]);
    release();
    await Promise.all(waiting);
    expect(entered).to.deep.equal([1, 2]);
  });
});

describe('A keyed sequencer', () => {
  it('runs the tasks of one key in order, passes on the error before, and forgets idle keys', async () => {
    const sequencer = new KeyedSequencer();
    const done: string[] = [];
    const failing = sequencer.run('one', async () => {
      await Promise.resolve();
      done.push('first');
      throw late();
    });
    const second = sequencer.run('one', (error) => done.push(String(error)));
    const last = sequencer.run('one', (error) => done.push(String(error)));
    const other = sequencer.run('other', () => done.push('other'));
    expect(sequencer.count('one')).to.equal(3);
    expect(await rejectionOf(failing)).to.have.property('message', 'late');
    await Promise.all([second, last, other]);
    expect(done).to.deep.equal(['other', 'first', 'Error: late', 'null']);
    expect([sequencer.count('one'), sequencer.count('other')]).to.deep.equal([0, 0]);
  });
});
