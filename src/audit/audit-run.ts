/**
 * Whether a run bears out as this service has it: its record, the place in its parent's that it goes on from, and the
 * view of it that is stored.
 */
import { RunDamaged } from '../errors.js';
import { canonical } from '../log/canonical.js';
import type { ExportedEvent } from '../log/chain.js';
import type { EventLog } from '../log/port.js';
import type { RunSummary } from '../projections/run-summary.js';
import { summaryOf } from '../projections/run-summary.js';
import { runStream } from '../run/events.js';
import type { RunState } from '../run/state.js';
import type { ReplayMeans } from '../run/replay.js';
import { readRun } from '../run/stream.js';
import { parentDifference } from './parent.js';
import type { Difference, Verified } from './verify.js';
import { verifyRecord } from './verify.js';

export type Audit = Pick<Verified, 'events' | 'headHash' | 'firstDifference'>;

export interface Auditing extends ReplayMeans {
  readonly log: Pick<EventLog, 'readStream'>;
  /** The stored view of a run, with everything in it that is recorded by the call; null when there is none. */
  readonly stored: (runId: string) => Promise<RunSummary | null>;
  /** Puts the fold in the place of a stored view that differs from it. */
  readonly replaceView: (seen: RunSummary | null, fold: RunSummary) => Promise<void>;
  /** Told of a record that does not bear out. */
  readonly onDamaged: (error: RunDamaged) => void;
}

/**
 * Reads and replays the whole record of a run; null when nothing is known of it. A stored view that differs is told and
 * replaced at once, so that nothing forged is served after it.
 */
export async function auditRun(runId: string, auditing: Auditing): Promise<Audit | null> {
  const { log, onDamaged } = auditing;
  const recorded = await headOf(log, runId);
  // Before the record is read, which may go on meanwhile: so the record always comes past what the view was folded to.
  const stored = await auditing.stored(runId);
  const witness: Witness = { first: null, viewed: null };
  const verified = await verifyRecord(runId, witnessed(readRun(log, runId), witness), {
    ...auditing,
    onTaken(run) {
      if (run.seq === stored?.seq) witness.viewed = run;
    },
  });
  if (verified.events === 0 && verified.firstDifference === null && recorded === null && stored === null) return null;
  const damage = verified.firstDifference ?? cutOff(verified, { recorded, stored });
  const { events, headHash, run } = verified;
  if (damage !== null) {
    onDamaged(new RunDamaged({ runId, seq: damage.seq, reason: damage.what }));
    return { events, headHash, firstDifference: damage };
  }
  const difference = viewDifference(witness.viewed, { recorded, stored });
  if (difference !== null && run !== null) await auditing.replaceView(stored, summaryOf(run));
  return { events, headHash, firstDifference: (await parentDifference(witness.first, auditing)) ?? difference };
}

/** What is seen of a record while it is replayed. */
interface Witness {
  first: ExportedEvent | null;
  /** The run after the event that the stored view was folded to. */
  viewed: RunState | null;
}

/** What was there before the record was read: the revision of its last event, and the view. */
interface Before {
  readonly recorded: number | null;
  readonly stored: RunSummary | null;
}

async function headOf(log: Auditing['log'], runId: string): Promise<number | null> {
  for await (const { revision } of log.readStream(runStream(runId), { direction: 'backwards', max: 1 }))
    return revision;
  return null;
}

async function* witnessed<T extends ExportedEvent>(events: AsyncIterable<T>, witness: Witness): AsyncIterable<T> {
  for await (const event of events) {
    witness.first ??= event;
    yield event;
  }
}

/** A record that ends before an event that it once had. */
function cutOff({ events }: Verified, { recorded, stored }: Before): Difference | null {
  const seen = Math.max(recorded ?? -1, stored?.seq ?? -1);
  return seen < events
    ? null
    : { seq: events, what: `the record ends before it, and has gone on to event ${seen} once` };
}

function viewDifference(viewed: RunState | null, { recorded, stored }: Before): Difference | null {
  if (recorded === null) return null;
  if (stored === null) return { seq: 0, what: 'no view of the run is stored that can be read' };
  if (stored.seq < recorded) return { seq: stored.seq + 1, what: 'the stored view of the run does not hold it' };
  if (viewed !== null && canonical(summaryOf(viewed)) === canonical(stored)) return null;
  return { seq: stored.seq, what: 'the stored view of the run is not the fold of its events' };
}
