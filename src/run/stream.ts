/** A run's stream on the log: appends facts, reads events and folds the run. */
import type { System } from '../system/system.js';
import { RunCorrupt } from './errors.js';
import { runEvents } from '../generated/recorded-events.js';
import { whyInvalid } from '../eventsourcing/event-data.js';
import type { ExportedEvent } from '../eventsourcing/hash-chain.js';
import { GENESIS_HASH, SCHEMA_VERSION, exportedOf } from '../eventsourcing/hash-chain.js';
import type { VerifiedRange } from '../eventsourcing/hash-chain.js';
import { BROKEN_LINK, assertLink, isLinked, readVerified } from '../eventsourcing/hash-chain.js';
import type { FactsAfter, StreamHead } from '../eventsourcing/aggregate.js';
import type { EventLog, RecordedEvent, StreamRange } from '../eventlog/port.js';
import type { RunEvent, RunFact, Upcast } from './events.js';
import { runIdOf, runStream, upcast } from './events.js';
import { evolve, firstState } from './evolve.js';
import type { RunState } from './state.js';
import { reasonOf } from '../system/untrusted.js';

/** Facts of a run, and the event that they follow, or null if the run has no event. */
export function factsAfter(head: StreamHead | null, runId: string, facts: readonly RunFact[]): FactsAfter<RunFact> {
  return { stream: runStream(runId), subject: runId, head, facts };
}

/**
 * A recorded event as the domain reads it. The fold validates the data of an older version, after upcasting.
 *
 * @throws {RunCorrupt} when it is not an event of a run, or its data does not fit the schema of its type
 */
export function runEventOf(recorded: RecordedEvent): RunEvent {
  return orCorrupt({ runId: runIdOf(recorded.stream) ?? recorded.stream, seq: recorded.revision }, () => {
    const event = exportedOf(recorded);
    const schemaVersion = Number(recorded.metadata['schemaVersion'] ?? SCHEMA_VERSION);
    if (schemaVersion < SCHEMA_VERSION && isOfRun(event)) return { ...event, schemaVersion };
    assertRunEvent(event);
    return event;
  });
}

/** @throws {Error} when it is not an event of a run, or its data does not fit the schema of its type */
export function assertRunEvent(event: ExportedEvent): asserts event is ExportedEvent & RunEvent {
  const misfit = whyInvalid(event, runEvents);
  if (misfit !== null) throw new Error(misfit);
}

function isOfRun(event: ExportedEvent): event is ExportedEvent & RunEvent {
  return Object.hasOwn(runEvents, event.type);
}

/**
 * An event in the form of the current version, ready to fold.
 *
 * @throws {RunCorrupt} when an upcast event does not fit the current schema
 */
export function currentEvent(runId: string, recorded: RunEvent, upcasts?: readonly Upcast[]): RunEvent {
  return orCorrupt({ runId, seq: recorded.seq }, () => {
    const event = upcast(recorded, upcasts);
    if (event !== recorded || recorded.schemaVersion !== undefined) assertRunEvent(event);
    return event;
  });
}

/** A run's events in order; none for an unknown run. */
export async function* readRun(
  log: Pick<EventLog, 'readStream'>,
  runId: string,
  range: StreamRange = {},
): AsyncIterable<RunEvent> {
  for await (const recorded of log.readStream(runStream(runId), range)) yield runEventOf(recorded);
}

/**
 * A run's events in order, with verified hashes; none for an unknown run.
 *
 * @throws {RunCorrupt} at the first event whose hash does not follow
 */
export function readChecked(
  log: Pick<EventLog, 'readStream'>,
  runId: string,
  range: VerifiedRange,
): AsyncGenerator<RunEvent> {
  const corrupt = (seq: number, cause: unknown): RunCorrupt => corruption({ runId, seq }, cause);
  return readVerified(log, { stream: runStream(runId), eventOf: runEventOf, corrupt }, range);
}

/** @throws {RunCorrupt} when an event's hash does not follow from the one before it */
export function assertFollows(
  runId: string,
  before: Pick<StreamHead, 'hash'>,
  { event, sha256 }: { readonly event: ExportedEvent; readonly sha256: System['sha256'] },
): void {
  orCorrupt({ runId, seq: event.seq }, () => assertLink(before.hash, event, sha256));
}

/** Checks a recorded event over its stored text; `before` is null for the first event. @throws {RunCorrupt} */
export function assertRecordedFollows(
  runId: string,
  before: Pick<StreamHead, 'hash'> | null,
  { recorded, sha256 }: RecordedLink,
): void {
  orCorrupt({ runId, seq: recorded.revision }, () => {
    if (!isLinked(before?.hash ?? GENESIS_HASH, recorded, sha256)) throw new Error(BROKEN_LINK);
  });
}

export interface RecordedLink {
  readonly recorded: RecordedEvent;
  readonly sha256: System['sha256'];
}

/**
 * The fold of a run's stream up to its head or up to a revision, or null if there is no such run.
 *
 * @throws {RunCorrupt}
 */
export async function foldRun(
  log: Pick<EventLog, 'readStream'>,
  runId: string,
  { sha256, to }: { readonly sha256: System['sha256']; readonly to?: number },
): Promise<RunState | null> {
  let run: RunState | null = null;
  const max = to === undefined ? {} : { max: to + 1 };
  for await (const event of readChecked(log, runId, { sha256, ...max })) run = foldNext(runId, run, event);
  return run;
}

/**
 * The state after the next event.
 *
 * @param run the state before, or null before the first event
 * @throws {RunCorrupt} when the event cannot be folded
 */
export function foldNext(
  runId: string,
  run: RunState | null,
  recorded: RunEvent,
  upcasts?: readonly Upcast[],
): RunState {
  return orCorrupt({ runId, seq: recorded.seq }, () => {
    const event = currentEvent(runId, recorded, upcasts);
    if (run !== null) return evolve(run, event);
    if (event.type !== 'RunRequested') throw new Error(`a run begins with RunRequested, not with ${event.type}`);
    if (event.data.runId !== runId) throw new Error(`it is the request of run "${event.data.runId}"`);
    return firstState(event);
  });
}

/** The result of `read`. Turns any error into a RunCorrupt at that event. */
export function orCorrupt<T>(at: { readonly runId: string; readonly seq: number }, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw corruption(at, error);
  }
}

function corruption(at: { readonly runId: string; readonly seq: number }, cause: unknown): RunCorrupt {
  if (cause instanceof RunCorrupt) return cause;
  return new RunCorrupt({ ...at, reason: reasonOf(cause) }, { cause });
}
