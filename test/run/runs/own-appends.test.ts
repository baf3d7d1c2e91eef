import { expect } from 'chai';
import type { EventLog } from '../../../src/eventlog/port.js';
import { positionFromText } from '../../../src/eventlog/port.js';
import type { OwnAppend } from '../../../src/run/runs/states.js';
import { nodeSystem } from '../../../src/system/system.js';
import { RunStates } from '../../../src/run/runs/states.js';
import type { RunEvent } from '../../../src/run/events.js';
import type { RunState } from '../../../src/run/state.js';
import { begun } from '../../support/given.js';
import { runRequest } from '../../support/open-engine.js';
import { rejectionOf } from '../../support/rejection.js';

const NOTHING = { fold: async () => null, async *events() {} };
const RUN = begun(runRequest('one')).run;

/** A run whose last event has this revision. */
function runAt(seq: number, runId = 'one'): RunState {
  return { ...RUN, runId, head: { seq, id: idOf(seq), hash: '', at: '' } };
}

function idOf(seq: number): string {
  return `event ${seq}`;
}

function eventsAt(...seqs: readonly number[]): readonly RunEvent[] {
  const started = { type: 'RunStarted', data: { epoch: 1 }, at: RUN.createdAt, hash: '' } as const;
  return seqs.map((seq) => ({ ...started, seq, id: idOf(seq) }));
}

const comesBack = (seq: number, id = idOf(seq)) => ({ revision: seq, id });

describe('An append of this instance that the subscription delivers', () => {
  const before = runAt(1);
  const after = runAt(3);
  const { signal } = new AbortController();
  const retryPolicy = { system: nodeSystem(), signal };
  /** Appends events by a log that calls a function before it acknowledges them. */
  const append = (
    own: RunStates,
    onAppend: () => void,
    recorded = eventsAt(2, 3),
    states: Pick<OwnAppend, 'before' | 'after'> = { before, after },
  ) => {
    const log: Pick<EventLog, 'append'> = {
      async append() {
        onAppend();
        return { revision: states.after.head.seq, position: positionFromText('1') };
      },
    };
    const sealed = { stream: 'run-one', events: [], expected: 'none', recorded } as const;
    return own.append(log, sealed, { ...states, retryPolicy });
  };

  it('gives the run after it, even if unacknowledged, and is forgotten after its last event', async () => {
    const own = new RunStates(NOTHING);
    await append(own, () => {
      expect(own.folded('one', comesBack(2))).to.equal(after);
    });
    expect(own.folded('one', comesBack(3))).to.equal(after);
    expect(own.folded('one', comesBack(3))).to.equal(null);
  });

  it('gives the recorded run, not the run after it, for an earlier event', async () => {
    const own = new RunStates(NOTHING);
    await append(own, () => {
      expect(own.folded('one', comesBack(0))).to.equal(before);
      expect(own.folded('one', comesBack(1))).to.equal(before);
    });
  });

  it('gives nothing for an event that another instance recorded in its place', async () => {
    const own = new RunStates(NOTHING);
    await append(own, () => {
      expect(own.folded('one', comesBack(2, 'of another'))).to.equal(null);
      expect(own.folded('one', comesBack(4))).to.equal(null);
      expect(own.folded('two', comesBack(2))).to.equal(null);
    });
  });

  it('is forgotten if it failed', async () => {
    const own = new RunStates(NOTHING);
    const refused = new Error('refused');
    expect(
      await rejectionOf(
        append(own, () => {
          throw refused;
        }),
      ),
    ).to.equal(refused);
    expect(own.folded('one', comesBack(2))).to.equal(null);
    expect(own.size).to.equal(0);
  });

  it('is forgotten if more runs have appends in flight than the limit', async () => {
    const own = new RunStates(NOTHING, { runs: 2, text: Number.MAX_SAFE_INTEGER });
    for (const runId of ['one', 'two', 'three']) {
      await append(own, () => undefined, eventsAt(0), { before: null, after: runAt(0, runId) });
    }
    expect(own.size).to.equal(2);
    expect(own.folded('one', comesBack(0))).to.equal(null);
    expect(own.folded('three', comesBack(0))?.runId).to.equal('three');
  });
});
