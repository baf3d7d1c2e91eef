/** A run's stream on the log: facts sealed for an append, recorded events read back, a run folded or replayed. */
import type { Ambient } from '../ambient.js';
import { RunDamaged } from '../errors.js';
import type { RunFacts } from '../generated/schemas.js';
import { checkLink, exportedOf, GENESIS_HASH, sealEvents } from '../log/chain.js';
import type { EventLog, NewEvent, RecordedEvent, StreamRange } from '../log/port.js';
import type { Charts } from './charts.js';
import type { RunEvent, RunFact } from './events.js';
import { runIdOf, runStream } from './events.js';
import { evolve, firstState } from './evolve.js';
import type { Chart, RunSnapshot } from './machine.js';
import type { RunState } from './state.js';

/** Where a stream ends; before the first event there is none. */
export type StreamHead = Pick<RunState, 'seq' | 'hash' | 'lastEventId'>;

/** Numbers, dates and hashes facts so that they follow a stream's head. */
export function sealFacts(
  facts: readonly RunFact[],
  {
    head,
    runId,
    around,
  }: {
    readonly head: StreamHead | null;
    readonly runId: string;
    readonly around: { readonly ambient: Ambient; readonly instanceId: string };
  },
): { readonly events: readonly NewEvent[]; readonly recorded: readonly RunEvent[] } {
  const { ambient, instanceId } = around;
  const { events, exported } = sealEvents(head ?? { seq: -1, hash: GENESIS_HASH }, facts, {
    at: ambient.now(),
    nextId: ambient.uuid,
    sha256: ambient.sha256,
    metadata: { instanceId },
    correlationId: runId,
    causationId: head?.lastEventId ?? runId,
  });
  return { events, recorded: exported.filter(isRunEvent) };
}

/**
 * A recorded event as the domain reads it.
 *
 * @throws {RunDamaged} when it is no event of a run
 */
export function runEventOf(recorded: RecordedEvent): RunEvent {
  return borneOut({ runId: runIdOf(recorded.stream) ?? recorded.stream, seq: recorded.revision }, () => {
    const event = exportedOf(recorded);
    if (!isRunEvent(event)) throw new Error(`${recorded.type} is no event of a run`);
    return event;
  });
}

/** Data of a known type is taken at its word: only this service writes run streams, and the chain guards them. */
function isRunEvent(event: { readonly type: string }): event is RunEvent {
  return Object.hasOwn(RUN_FACT_TYPES, event.type);
}

const RUN_FACT_TYPES: Readonly<Record<keyof RunFacts, true>> = {
  RunRequested: true,
  RunClaimed: true,
  RunReleased: true,
  RunStarted: true,
  RunResumed: true,
  NodeStarted: true,
  NodeCompleted: true,
  NodeFailed: true,
  RunPaused: true,
  GateDecided: true,
  RunCompleted: true,
  RunFailed: true,
};

/** A run's events in order; an unknown run has none. */
export async function* readRun(log: EventLog, runId: string, range: StreamRange = {}): AsyncIterable<RunEvent> {
  for await (const recorded of log.readStream(runStream(runId), range)) yield runEventOf(recorded);
}

/**
 * The fold of a run's stream up to its head, or up to an event; null when there is no such run.
 *
 * @throws {RunDamaged}
 */
export async function foldRun(log: EventLog, runId: string, range: StreamRange = {}): Promise<RunState | null> {
  let run: RunState | null = null;
  for await (const event of readRun(log, runId, range)) run = foldNext(runId, run, event);
  return run;
}

/**
 * The state after one more event; of no state, after the first.
 *
 * @throws {RunDamaged} when nothing can be made of the event
 */
export function foldNext(runId: string, run: RunState | null, event: RunEvent): RunState {
  return borneOut({ runId, seq: event.seq }, () => {
    if (run !== null) return evolve(run, event);
    if (event.type !== 'RunRequested') throw new Error(`a run begins with RunRequested, not with ${event.type}`);
    return firstState(event);
  });
}

export interface Replay {
  readonly chart: Chart;
  readonly snapshot: RunSnapshot;
}

/**
 * A run replayed through its chart, every link of its hash chain checked; null when there is no such run.
 *
 * @throws {RunDamaged} at the first event that the chain or the chart does not bear out
 */
export async function replayRun(
  log: EventLog,
  runId: string,
  { charts, sha256 }: { readonly charts: Charts; readonly sha256: Ambient['sha256'] },
): Promise<Replay | null> {
  let replayed: Replay | null = null;
  let previous = GENESIS_HASH;
  for await (const event of readRun(log, runId)) {
    const before: Replay | null = replayed;
    const last = previous;
    replayed = borneOut({ runId, seq: event.seq }, (): Replay => {
      if (!checkLink(last, event, sha256)) throw new Error('its hash does not follow from the event before it');
      return follow(before, event, charts);
    });
    previous = event.hash;
  }
  return replayed;
}

function follow(replayed: Replay | null, event: RunEvent, charts: Charts): Replay {
  if (replayed !== null) return { ...replayed, snapshot: replayed.chart.next(replayed.snapshot, event) };
  if (event.type !== 'RunRequested') throw new Error(`a run begins with RunRequested, not with ${event.type}`);
  const chart = charts.of(event.data);
  return { chart, snapshot: chart.first(event) };
}

/** What is read of an event, or the damage that keeps it from being read. */
function borneOut<T>(at: { readonly runId: string; readonly seq: number }, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw damage(at, error);
  }
}

function damage(at: { readonly runId: string; readonly seq: number }, cause: unknown): RunDamaged {
  if (cause instanceof RunDamaged) return cause;
  return new RunDamaged({ ...at, reason: cause instanceof Error ? cause.message : String(cause) }, { cause });
}
