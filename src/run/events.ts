/** The events of a run's stream, as the domain reads them. Their data is defined by schemas/run-events.json. */
import type { RunFacts } from '../generated/schemas.js';

export type RunFactType = keyof RunFacts;

/** A fact that a decision leads to, before it is recorded: it has no number, date or hash yet. */
export type RunFact = { [T in RunFactType]: { readonly type: T; readonly data: RunFacts[T] } }[RunFactType];

/** A recorded event, in the shape of the events endpoint. */
export type RunEvent = RunFact & {
  /** Revision in the run's stream, from 0. */
  readonly seq: number;
  readonly id: string;
  /** ISO 8601, UTC, milliseconds. */
  readonly at: string;
  readonly hash: string;
  /** Version of its data if older than the current one: the fold upcasts it. */
  readonly schemaVersion?: number;
};

/** The types of the events that end a run. */
export const RUN_ENDS: readonly RunFactType[] = ['RunCompleted', 'RunFailed'];

/** Whether these facts make an instance the owner of the run. */
export function claimsRun(facts: readonly RunFact[]): boolean {
  return facts.some((fact) => fact.type === 'RunClaimed');
}

/** Stream of a run. */
export function runStream(runId: string): string {
  return `run-${runId}`;
}

/** The run of a stream, or null for a stream of another category. */
export function runIdOf(stream: string): string | null {
  const prefix = runStream('');
  return stream.startsWith(prefix) ? stream.slice(prefix.length) : null;
}

/** Whether a run has the id of one that a council has started: a version-5 UUID. */
export function isChildId(runId: string): boolean {
  return runId.charAt(14) === '5';
}

/** A change that a version made to the data of an event: converts data of earlier versions. */
export interface Upcast {
  /** Type of the events it changes. */
  readonly type: string;
  /** The first version with this change. */
  readonly to: number;
  /**
   * Turns data of any earlier version, after all earlier changes, into the form of version `to`. An export does not name
   * its version, so data already in the new form must stay unchanged.
   */
  readonly change: (data: object) => object;
}

/** Every change since version 1, oldest first. Each raises `SCHEMA_VERSION` in eventsourcing/hash-chain.ts. */
const UPCASTS: readonly Upcast[] = [];

/** The part of an event that upcasting reads. */
interface Versioned {
  readonly type: string;
  readonly data: object;
  /** Version of its data; absent if it is the current one or unknown. */
  readonly schemaVersion?: number;
}

/**
 * The event in the form of the current version. Only the fold applies it: the service hashes, exports and lists an event
 * as it was recorded.
 */
export function upcast<E extends Versioned>(event: E, upcasts: readonly Upcast[] = UPCASTS): E {
  const { type, schemaVersion = 0 } = event;
  const due = upcasts.filter((each) => each.type === type && each.to > schemaVersion);
  if (due.length === 0) return event;
  return { ...event, data: due.reduce((data, { change }) => change(data), event.data) };
}
