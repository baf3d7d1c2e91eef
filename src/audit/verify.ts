/** Verifies a run: its record, the event of its parent that it was forked from, and its stored view. */
import { StreamRemoved } from '../eventlog/errors.js';
import { RunCorrupt, RunErased } from '../run/errors.js';
import { canonical } from '../eventsourcing/canonical-json.js';
import type { ExportedEvent } from '../eventsourcing/hash-chain.js';
import type { EventLog } from '../eventlog/port.js';
import { lastEvent, mayHaveLostEnd } from '../eventlog/port.js';
import type { RunSummary } from '../projections/run-summary.js';
import { summaryOf } from '../projections/run-summary.js';
import { runStream } from '../run/events.js';
import type { RequestInState, RunState } from '../run/state.js';
import type { ReplayDeps } from '../run/replay.js';
import { RunReplayer, endsBefore } from '../run/replay.js';
import { readChecked } from '../run/stream.js';
import type { System } from '../system/system.js';

export type RunVerification = Pick<Verified, 'events' | 'headHash' | 'firstDifference'>;

export interface VerifyRunDeps extends ReplayDeps {
  readonly log: Pick<EventLog, 'readStream' | 'hasGaps'>;
  /** The stored view of a run, up to date with the log at the call, or null if there is none. */
  readonly stored: (runId: string) => Promise<RunSummary | null>;
  /** Replaces a stored view that differs from the fold. */
  readonly replaceView: (seen: RunSummary | null, fold: RunSummary) => Promise<void>;
  /** Called with each corrupt record. */
  readonly onCorrupt: (error: RunCorrupt) => void;
  /** Called if the complete record of the run is valid. */
  readonly onValid: (runId: string) => void;
}

/**
 * Reads and replays the complete record of a run, or returns null if the run is unknown. Reports and replaces a
 * stored view that differs, so that the service serves no forged view afterwards.
 */
export async function verifyRun(runId: string, deps: VerifyRunDeps): Promise<RunVerification | null> {
  const { log, onCorrupt } = deps;
  const recorded = await lastRevision(log, runId);
  // Read before the record, so that the record is at least as new as the view.
  const stored = await deps.stored(runId);
  let viewed: RunState | null = null;
  const verified = await verifyStored(runId, {
    ...deps,
    onReplayed(run) {
      if (run.head.seq === stored?.seq) viewed = run;
    },
  });
  if (verified.events === 0 && verified.firstDifference === null && recorded === null && stored === null) return null;
  const recordDifference = verified.firstDifference ?? (await truncationOf(verified, { recorded, stored }, log));
  const { events, headHash, run } = verified;
  if (recordDifference !== null) {
    onCorrupt(new RunCorrupt({ runId, seq: recordDifference.seq, reason: recordDifference.what }));
    return { events, headHash, firstDifference: recordDifference };
  }
  deps.onValid(runId);
  const difference = viewDifference(viewed, { recorded, stored }, verified);
  if (difference !== null && run !== null) await deps.replaceView(stored, summaryOf(run));
  const ofParent = await parentDifference(run?.request.parent ?? null, deps);
  return { events, headHash, firstDifference: ofParent ?? difference };
}

/** Null also if the last event is unreadable: the verification of the record then says why. */
async function lastRevision(log: Pick<EventLog, 'readStream'>, runId: string): Promise<number | null> {
  try {
    return (await lastEvent(log, runStream(runId)))?.revision ?? null;
  } catch (error) {
    if (error instanceof RunCorrupt) return null;
    throw error;
  }
}

/** What was read before the record: the revision of its last event, and the view. */
interface Before {
  readonly recorded: number | null;
  readonly stored: RunSummary | null;
}

/**
 * Detects a truncated record, which lacks an event that it once had. If the log may have lost that event, a stored view
 * that is ahead of its record proves the loss; otherwise the view is wrong.
 */
async function truncationOf(
  { events }: Verified,
  { recorded, stored }: Before,
  log: VerifyRunDeps['log'],
): Promise<Difference | null> {
  const isWitness = await mayHaveLostEnd(log, events - 1);
  const seen = Math.max(recorded ?? -1, isWitness ? (stored?.seq ?? -1) : -1);
  return seen < events ? null : { seq: events, what: endsBefore(seen) };
}

function viewDifference(
  viewed: RunState | null,
  { recorded, stored }: Before,
  { events }: Verified,
): Difference | null {
  if (recorded === null) return null;
  if (stored !== null && stored.seq >= events) {
    return { seq: events, what: 'the stored view of the run is ahead of its record' };
  }
  if (stored === null) return { seq: 0, what: 'the stored view of the run is missing' };
  if (stored.seq < recorded) return { seq: stored.seq + 1, what: 'the stored view of the run lacks this event' };
  if (viewed !== null && canonical(summaryOf(viewed)) === canonical(stored)) return null;
  return { seq: stored.seq, what: 'the stored view of the run is not the fold of its events' };
}

/** Where and why a record first fails verification. */
export interface Difference {
  /** Revision of the event, even if it is missing. */
  readonly seq: number;
  readonly what: string;
}

export interface Verified {
  /** Number of valid events, from the first. */
  readonly events: number;
  /** Hash of the last valid event, or 64 zeros if there is none. */
  readonly headHash: string;
  readonly firstDifference: Difference | null;
  /** The run after the valid events, or null if there are none. */
  readonly run: RunState | null;
}

export interface VerifyDeps extends ReplayDeps {
  /** Called with the run after each valid event. */
  readonly onReplayed?: (run: RunState) => void;
}

/**
 * Replays the events of a run up to the first invalid one: computes every hash again, and checks every event against
 * the chart of the graph in the first event.
 *
 * @param events in order; a RunCorrupt of the iteration counts as a difference, other errors are rethrown
 */
export function verifyRecord(runId: string, events: AsyncIterable<ExportedEvent>, deps: VerifyDeps): Promise<Verified> {
  return replayed(runId, deps, async (replayer, taken) => {
    for await (const event of events) {
      replayer.apply(event);
      taken();
    }
  });
}

/** The same for the events in a log, whose hashes are computed over the stored texts. */
export function verifyStored(
  runId: string,
  { log, ...deps }: VerifyDeps & { readonly log: Pick<EventLog, 'readStream'> },
): Promise<Verified> {
  return replayed(runId, deps, async (replayer, taken) => {
    for await (const event of readChecked(log, runId, deps)) {
      replayer.applyChecked(event);
      taken();
    }
  });
}

async function replayed(
  runId: string,
  deps: VerifyDeps,
  takeAll: (replayer: RunReplayer, taken: () => void) => Promise<void>,
): Promise<Verified> {
  const replayer = new RunReplayer(runId, deps);
  const verified = (firstDifference: Difference | null): Verified => ({
    events: replayer.events,
    headHash: replayer.headHash,
    firstDifference,
    run: replayer.replay?.snapshot.context.run ?? null,
  });
  try {
    await takeAll(replayer, () => {
      if (replayer.replay !== null) deps.onReplayed?.(replayer.replay.snapshot.context.run);
    });
    return verified(null);
  } catch (error) {
    if (!(error instanceof RunCorrupt)) throw error;
    return verified({ seq: error.data.seq, what: error.data.reason });
  }
}

export interface ParentDeps {
  readonly log: Pick<EventLog, 'readStream'>;
  readonly sha256: System['sha256'];
  /** Called with a parent's record that is invalid. */
  readonly onCorrupt: (error: RunCorrupt) => void;
}

/**
 * Checks that the parent of a fork has the event that it was forked from. Returns null if it has, or without a parent, or if
 * the parent is erased.
 */
export async function parentDifference(
  parent: RequestInState['parent'],
  { log, sha256, onCorrupt }: ParentDeps,
): Promise<Difference | null> {
  if (parent === null) return null;
  const { runId, at, hash } = parent;
  try {
    for await (const event of readChecked(log, runId, { sha256, from: at, max: 1 })) {
      if (event.hash === hash) return null;
    }
    return { seq: 0, what: `its parent "${runId}" has no event ${at} with the hash ${hash}` };
  } catch (error) {
    // What the fork took from its parent is in its own record.
    if (error instanceof RunErased || error instanceof StreamRemoved) return null;
    if (!(error instanceof RunCorrupt)) throw error;
    onCorrupt(error);
    return { seq: 0, what: `its parent "${runId}" is damaged at event ${error.data.seq}: ${error.data.reason}` };
  }
}
