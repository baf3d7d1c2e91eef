/**
 * Changes of an aggregate: read, decide, seal, append at the exact revision, and all of it again after a conflict. A live run
 * is in memory, so its actor has a loop of its own, without the read.
 */
import type { EventLog, Position, RecordedEvent, StreamAppend } from '../eventlog/port.js';
import { RevisionConflict } from '../eventlog/errors.js';
import { untilDeadline } from '../system/async/deadline.js';
import type { System } from '../system/system.js';
import { appendWithRetry } from '../eventlog/port.js';
import type { ChainHead, Fact, SealedEvent } from './hash-chain.js';
import { GENESIS_HASH, sealEvents } from './hash-chain.js';

/** A change of an aggregate: a stream, and the state that its events fold to. */
export interface AggregateChange<State, F extends Fact> {
  readonly stream: string;
  /** The id of what the stream records. */
  readonly subject: string;
  /**
   * The state at the end of the stream, verified and folded.
   *
   * @param conflict the conflict with an append that the state must include, or null at first
   */
  readonly read: (conflict: RevisionConflict | null) => State | Promise<State>;
  /** The last event of a state, or null if the stream is empty. */
  readonly headOf: (state: State) => StreamHead | null;
  /** The facts to record, or none if nothing changes. If it throws, nothing is recorded. */
  readonly decide: (state: State) => readonly F[] | Promise<readonly F[]>;
  /** Time limit of the retries of an append, in milliseconds. Default: none. */
  readonly maxAppendMs?: number;
  /** The number of conflicts at which the change fails, and its error. Default: no limit. */
  readonly limit?: { readonly conflicts: number; readonly error: (cause: RevisionConflict) => Error };
}

/** What a change has recorded. */
export interface Changed<State, F extends Fact> {
  /** The state that the change was decided on. */
  readonly before: State;
  readonly recorded: readonly SealedEvent<F>[];
  /** Position of the last recorded event, or null if nothing is recorded. */
  readonly position: Position | null;
}

/**
 * Changes an aggregate at the exact revision that the change was decided on. After a conflict with another append, it
 * reads and decides again.
 *
 * @param signal ends the retries of an append: the last error is thrown, and the outcome may stay unknown
 * @throws {AppendTooLarge | AppendInvalid | LogFull | LogCorrupt | LogClosed} certainly not written
 */
export async function changeAggregate<State, F extends Fact>(
  deps: AppendDeps,
  { stream, subject, read, headOf: headIn, decide, maxAppendMs, limit }: AggregateChange<State, F>,
  signal: AbortSignal,
): Promise<Changed<State, F>> {
  let conflict: RevisionConflict | null = null;
  for (let conflicts = 1; ; conflicts += 1) {
    // 1. Read and fold the stream.
    const before = await read(conflict);
    // 2. Decide what to record.
    const facts = await decide(before);
    if (facts.length === 0) return { before, recorded: [], position: null };
    // 3. Append after the last event of that state.
    const after = { stream, subject, head: headIn(before), facts };
    const append = (until: AbortSignal) => appendFacts(deps, after, until);
    try {
      if (maxAppendMs === undefined) return { before, ...(await append(signal)) };
      return { before, ...(await untilDeadline(append, { system: deps.system, maxMs: maxAppendMs, signal })) };
    } catch (error) {
      // 4. Another append came first: begin again with its events.
      if (!(error instanceof RevisionConflict)) throw error;
      if (limit !== undefined && conflicts >= limit.conflicts) throw limit.error(error);
      conflict = error;
    }
  }
}

/** Where a stream ends: its last event. */
export interface StreamHead extends ChainHead {
  readonly id: string;
  /** ISO 8601. */
  readonly at: string;
}

/** The head that a sealed event makes. */
export function headOf({ seq, id, hash, at }: StreamHead): StreamHead {
  return { seq, id, hash, at };
}

/** The head that the event makes: an append may follow it even if the event is corrupt. */
export function headAt({ revision, id, metadata }: RecordedEvent): StreamHead {
  return { seq: revision, id, hash: metadata['hash'] ?? GENESIS_HASH, at: metadata['occurredAt'] ?? '' };
}

/** What sealing needs from this instance. */
export interface SealDeps {
  readonly system: Pick<System, 'now' | 'uuid' | 'sha256'>;
  readonly instanceId: string;
}

/** Facts and the event that they follow. */
export interface FactsAfter<F extends Fact> {
  readonly stream: string;
  /** The id of the run, blueprint, document or instance that the stream records. */
  readonly subject: string;
  /** The last event, or null if the stream has none. */
  readonly head: StreamHead | null;
  readonly facts: readonly F[];
  /** When they were decided; default: now. */
  readonly at?: string;
}

/** Facts sealed for one append, and the same events as they will be read. */
export interface SealedAppend<F extends Fact> extends StreamAppend {
  readonly recorded: readonly SealedEvent<F>[];
}

/**
 * Numbers, dates and hashes facts so that they follow a stream's head. The times of a stream never go back: if the clock
 * of this instance is behind that of the instance that wrote the head, the facts get the time of the head.
 *
 * @throws {TypeError} when data is no JSON
 */
export function sealAppend<F extends Fact>(
  { system, instanceId }: SealDeps,
  { stream, subject, head, facts, at = system.now() }: FactsAfter<F>,
): SealedAppend<F> {
  const { events, exported } = sealEvents(head ?? BEGINNING, facts, {
    at: laterOf(at, head?.at),
    nextId: system.uuid,
    sha256: system.sha256,
    instanceId,
    correlationId: subject,
    causationId: head?.id ?? subject,
  });
  return { stream, events, expected: head?.seq ?? 'none', recorded: exported };
}

/** The later of two times in ISO 8601, or the first if there is no second. */
export function laterOf(at: string, other: string | undefined): string {
  return other !== undefined && other > at ? other : at;
}

const BEGINNING: ChainHead = { seq: -1, hash: GENESIS_HASH };

export interface AppendDeps extends SealDeps {
  readonly log: EventLog;
  readonly system: SealDeps['system'] & Pick<System, 'after'>;
}

/**
 * Seals facts and appends them with the same ids until the log acknowledges or refuses them.
 *
 * @param signal ends the retries: the last error is thrown, and the outcome may stay unknown
 * @throws {RevisionConflict | AppendTooLarge | AppendInvalid | LogFull | LogCorrupt | LogClosed} certainly not written
 */
export async function appendFacts<F extends Fact>(
  deps: AppendDeps,
  facts: FactsAfter<F>,
  signal: AbortSignal,
): Promise<{ readonly recorded: readonly SealedEvent<F>[]; readonly position: Position }> {
  const sealed = sealAppend(deps, facts);
  const { position } = await appendWithRetry(deps.log, sealed, { system: deps.system, signal });
  return { recorded: sealed.recorded, position };
}
