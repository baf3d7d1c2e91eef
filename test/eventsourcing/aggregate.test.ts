import { expect } from 'chai';
import { join } from 'node:path';
import { AppendOutcomeUnknown, LogUnavailable, RevisionConflict } from '../../src/eventlog/errors.js';
import { openEmbeddedLog } from '../../src/eventlog/embedded/log.js';
import type { EventLog } from '../../src/eventlog/port.js';
import type { AggregateChange, StreamHead } from '../../src/eventsourcing/aggregate.js';
import { changeAggregate } from '../../src/eventsourcing/aggregate.js';
import { exportedOf } from '../../src/eventsourcing/hash-chain.js';
import { readVerified } from '../../src/eventsourcing/hash-chain.js';
import { nodeSystem } from '../../src/system/system.js';
import { changedLog } from '../support/changed-log.js';
import { rejectionOf } from '../support/rejection.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';

/** Opened once. Each test has its own aggregate: a till whose sum never falls below zero. */
interface Till {
  readonly sum: number;
  readonly head: StreamHead | null;
}
type TillFact = { readonly type: 'PaidIn' | 'PaidOut'; readonly data: { readonly amount: number } };

class Refused extends Error {}

describe('A change of an aggregate', () => {
  let dir: TempDir;
  let log: EventLog;
  let stream: string;
  let tills = 0;

  before(async () => {
    dir = tempDir();
    log = await openEmbeddedLog({ file: join(dir.path, 'log.sqlite') });
  });
  after(async () => {
    await log.close();
    dir.remove();
  });
  beforeEach(() => {
    tills += 1;
    stream = `till-${tills}`;
  });

  const system = { ...nodeSystem(), after: (_: number, callback: () => void) => nodeSystem().after(0, callback) };
  const { signal } = new AbortController();

  async function read(from: EventLog): Promise<Till> {
    const corrupt = (seq: number, cause: unknown): Error => new Refused(`seq ${seq}`, { cause });
    let till: Till = { sum: 0, head: null };
    for await (const event of readVerified(from, { stream, eventOf: exportedOf, corrupt }, system)) {
      const { amount } = event.data as TillFact['data'];
      till = { sum: till.sum + (event.type === 'PaidIn' ? amount : -amount), head: event };
    }
    return till;
  }

  interface Options {
    readonly on?: EventLog;
    readonly signal?: AbortSignal;
    readonly limit?: number;
    readonly deciding?: (till: Till) => void | Promise<void>;
  }

  /** Pays an amount. Resolves with the sum on which the payment was decided. */
  async function pay(fact: TillFact, { on = log, signal: until = signal, limit, deciding }: Options = {}) {
    const change: AggregateChange<Till, TillFact> = {
      stream,
      subject: 'a till',
      read: () => read(on),
      headOf: ({ head }) => head,
      async decide(till) {
        await deciding?.(till);
        if (fact.type === 'PaidOut' && till.sum < fact.data.amount) throw new Refused(`only ${till.sum} in it`);
        return fact.data.amount === 0 ? [] : [fact];
      },
      ...(limit !== undefined && {
        limit: { conflicts: limit, error: (cause) => new Refused('contended', { cause }) },
      }),
    };
    const { before } = await changeAggregate({ log: on, system, instanceId: 'one' }, change, until);
    return before.sum;
  }
  const paidIn = (amount: number): TillFact => ({ type: 'PaidIn', data: { amount } });
  const paidOut = (amount: number): TillFact => ({ type: 'PaidOut', data: { amount } });

  it('appends decisions, each event after the one before it', async () => {
    await pay(paidIn(5));
    await pay(paidIn(2));
    expect(await pay(paidOut(6))).to.equal(7);
    expect(await read(log))
      .to.deep.include({ sum: 1 })
      .and.to.have.nested.property('head.seq', 2);
  });

  it('appends nothing when nothing changes', async () => {
    await pay(paidIn(5));
    expect(await pay(paidIn(0))).to.equal(5);
    expect((await read(log)).head?.seq).to.equal(0);
  });

  it('appends nothing when the decision is refused', async () => {
    expect(await rejectionOf(pay(paidOut(1)))).to.be.instanceOf(Refused);
    expect((await read(log)).head).to.equal(null);
  });

  it('decides again on the newer state after a conflict', async () => {
    await pay(paidIn(5));
    const seen: number[] = [];
    const racing = pay(paidOut(5), {
      async deciding({ sum }) {
        seen.push(sum);
        if (seen.length === 1) await pay(paidOut(1));
      },
    });
    expect(await rejectionOf(racing))
      .to.be.instanceOf(Refused)
      .with.property('message', 'only 4 in it');
    expect(seen).to.deep.equal([5, 4]);
  });

  it('fails at the limit of conflicts, with the last as its cause', async () => {
    let decided = 0;
    const error = await rejectionOf(
      pay(paidIn(1), {
        limit: 3,
        async deciding() {
          decided += 1;
          await pay(paidIn(10));
        },
      }),
    );
    expect(error).to.be.instanceOf(Refused).with.property('cause').that.is.instanceOf(RevisionConflict);
    expect([decided, (await read(log)).sum]).to.deep.equal([3, 30]);
  });

  it('does not append twice when the outcome was unknown', async () => {
    let lost = 3;
    const mute = changedLog(log, {
      async append(...append) {
        const appended = await log.append(...append);
        if (lost-- > 0) throw new AppendOutcomeUnknown({ stream });
        return appended;
      },
    });
    await pay(paidIn(5), { on: mute });
    expect(await read(log))
      .to.deep.include({ sum: 5 })
      .and.to.have.nested.property('head.seq', 0);
  });

  it('decides again when an append of unknown outcome was not written and another event took its revision', async () => {
    await pay(paidIn(5));
    let isLost = false;
    const losing = changedLog(log, {
      async append(...append) {
        if (isLost) return await log.append(...append);
        isLost = true;
        await pay(paidOut(2));
        throw new AppendOutcomeUnknown({ stream });
      },
    });
    expect(await pay(paidOut(3), { on: losing })).to.equal(3);
    expect((await read(log)).sum).to.equal(0);
  });

  it('leaves the outcome unknown when its retries end, and the next read finds the event', async () => {
    const ending = new AbortController();
    const mute = changedLog(log, {
      async append(...append) {
        await log.append(...append);
        ending.abort();
        throw new AppendOutcomeUnknown({ stream });
      },
    });
    const error = await rejectionOf(pay(paidIn(5), { on: mute, signal: ending.signal }));
    expect(error).to.be.instanceOf(AppendOutcomeUnknown);
    expect(await pay(paidOut(5))).to.equal(5);
  });

  it('retries while the log is unavailable, and throws other errors at once', async () => {
    let away = 3;
    const absent = changedLog(log, {
      append(...append) {
        return away-- > 0 ? Promise.reject(new LogUnavailable()) : log.append(...append);
      },
    });
    await pay(paidIn(1), { on: absent });
    expect(away).to.equal(-1);
    const broken = changedLog(log, { append: () => Promise.reject(new TypeError('broken')) });
    expect(await rejectionOf(pay(paidIn(1), { on: broken }))).to.be.instanceOf(TypeError);
  });

  it('appends nothing to a stream whose hash chain is broken', async () => {
    await pay(paidIn(5));
    const { head } = await read(log);
    const forged = { id: nodeSystem().uuid(), type: 'PaidIn', data: '{"amount":95}' };
    await log.append(stream, [{ ...forged, metadata: { hash: '0'.repeat(64), occurredAt: '' } }], head?.seq ?? 'none');
    expect(await rejectionOf(pay(paidOut(50))))
      .to.be.instanceOf(Refused)
      .with.property('message', 'seq 1');
    const types: string[] = [];
    for await (const { type } of log.readStream(stream)) types.push(type);
    expect(types).to.deep.equal(['PaidIn', 'PaidIn']);
  });
});
