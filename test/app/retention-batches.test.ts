import { expect } from 'chai';
import { startRetention } from '../../src/app/retention.js';
import { RunCorrupt } from '../../src/run/errors.js';
import { nodeSystem } from '../../src/system/system.js';
import type { System } from '../../src/system/system.js';
import { untilTrue } from '../support/until-true.js';

/** A clock on which no time passes while it waits. */
const hurried: System = { ...nodeSystem(), after: (_, callback) => nodeSystem().after(0, callback) };

describe('The batches of the retention', () => {
  let retention: { stop(): Promise<void> };
  let start: () => void;
  let due: Set<string>;
  let corrupt: ReadonlySet<string>;
  /** That found runs. */
  let queries: number;
  let looks: number;
  let largest: number;

  beforeEach(() => {
    [due, corrupt, queries, looks, largest] = [new Set(), new Set(), 0, 0, 0];
    start = () =>
      (retention = startRetention({
        erasures: {
          async eraseRuns(runIds) {
            largest = Math.max(largest, runIds.length);
            const runId = runIds.find((each) => corrupt.has(each));
            if (runId !== undefined) throw new RunCorrupt({ runId, seq: 0, reason: 'unreadable' });
            for (const each of runIds) due.delete(each);
          },
        },
        history: {
          async expired(_days, _now, max) {
            if (due.size > 0) queries += 1;
            return [...due].slice(0, max);
          },
        },
        members: { isInTurn: () => (looks += 1) < 100 },
        days: 1,
        system: hurried,
        logger: { info: () => undefined, error: () => undefined },
      }));
  });
  afterEach(() => retention.stop());

  it('take many runs with one query, a few at a time', async () => {
    for (let n = 0; n < 400; n += 1) due.add(`run ${n}`);
    start();
    await untilTrue(() => due.size === 0);
    expect(queries).to.be.at.most(2);
    expect(largest).to.be.at.most(25);
  });

  it('pass over runs that cannot be erased, however many come first', async () => {
    for (let n = 0; n < 120; n += 1) due.add(`run ${n}`);
    corrupt = new Set([...due].slice(0, 60));
    start();
    await untilTrue(() => due.size === 60);
    expect([...due]).to.deep.equal([...corrupt]);
  });
});
