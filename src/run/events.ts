/** The events of a run's stream, as the domain reads them. Their data is defined by schemas/run-events.json. */
import type { RunFacts } from '../generated/schemas.js';

export type RunFactType = keyof RunFacts;

/** A fact a decision asks to record: not yet numbered, dated or hashed. */
export type RunFact = { [T in RunFactType]: { readonly type: T; readonly data: RunFacts[T] } }[RunFactType];

/** A recorded fact: the shape the events endpoint shows. */
export type RunEvent = RunFact & {
  /** Revision in the run's stream, from 0. */
  readonly seq: number;
  readonly id: string;
  /** ISO 8601, UTC, milliseconds. */
  readonly at: string;
  readonly hash: string;
  /** Version its data was written in, when that is older than today's: it is upcast before it is folded. */
  readonly schemaVersion?: number;
};

/** Whether one of these facts makes an instance the owner of the run. */
export function claimsRun(facts: readonly RunFact[]): boolean {
  return facts.some((fact) => fact.type === 'RunClaimed');
}

/** Stream of a run. */
export function runStream(runId: string): string {
  return `run-${runId}`;
}

/** The run that a stream belongs to, null when it is a stream of another category. */
export function runIdOf(stream: string): string | null {
  const prefix = runStream('');
  return stream.startsWith(prefix) ? stream.slice(prefix.length) : null;
}

/** A change that came with a version of the events' data: how data of an earlier version is read today. */
export interface Upcast {
  /** Type of the events it changes. */
  readonly type: string;
  /** The first version written so. */
  readonly to: number;
  /**
   * Turns data of any earlier version, already through the changes before this one, into what version `to` writes. An
   * export does not name its version, so data already in the new form must come out unchanged.
   */
  readonly change: (data: object) => object;
}

/** Every change since version 1, oldest first. Raise `SCHEMA_VERSION` in eventsourcing/hash-chain.ts with each. */
const UPCASTS: readonly Upcast[] = [];

/** An event, as far as upcasting looks at it. */
interface Versioned {
  readonly type: string;
  readonly data: object;
  /** Version its data was written in; absent: today's, or unknown. */
  readonly schemaVersion?: number;
}

/**
 * The event as today's version would have written it. Applied where events are folded, never where they are verified or
 * shown: a record is hashed, exported and listed as it was written.
 */
export function upcast<E extends Versioned>(event: E, upcasts: readonly Upcast[] = UPCASTS): E {
  const { type, schemaVersion = 0 } = event;
  const due = upcasts.filter((each) => each.type === type && each.to > schemaVersion);
  if (due.length === 0) return event;
  return { ...event, data: due.reduce((data, { change }) => change(data), event.data) };
}
