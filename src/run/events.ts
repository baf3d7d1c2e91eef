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

/** Whether an instance takes the run with these facts. */
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

// * Events of earlier schema versions, as today's fold reads them. Applied where events are folded, never where
// they are checked or shown: a record is hashed, exported and listed as it was written.

/** A change that came with a version of the events' data. */
export interface Upcast {
  /** Type of the events it changes. */
  readonly type: string;
  /** The first version written so. */
  readonly to: number;
  /**
   * Data of any earlier version, after the changes that came before this one, as version `to` writes it. An export does
   * not tell its version, so data that is written so already must come out as it went in.
   */
  readonly change: (data: object) => object;
}

/** Every change since version 1, oldest first. Raise log/chain's version with each. */
const UPCASTS: readonly Upcast[] = [];

/** What may be upcast. */
interface Versioned {
  readonly type: string;
  readonly data: object;
  /** Version its data was written in; absent: today's, or not told. */
  readonly schemaVersion?: number;
}

/** The event as today's version would have written it. */
export function upcast<E extends Versioned>(event: E, upcasts: readonly Upcast[] = UPCASTS): E {
  const { type, schemaVersion = 0 } = event;
  const due = upcasts.filter((each) => each.type === type && each.to > schemaVersion);
  if (due.length === 0) return event;
  return { ...event, data: due.reduce((data, { change }) => change(data), event.data) };
}
