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
