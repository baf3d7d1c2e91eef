/** Where the commands read a run's record: a running service, or the data directory of a stopped one. */
import { CouncilError } from '../../errors.js';
import type { FoldedRun } from '../../generated/schemas.js';
import type { ExportedEvent } from '../../eventsourcing/hash-chain.js';
import type { VerificationResult } from './verification-result.js';

export interface RunRecords {
  /** A run's export: its events as lines, byte for byte as the events endpoint gives them. @throws {RunUnknown} */
  export(runId: string): AsyncIterable<Uint8Array>;
  /** A run's events as they are recorded, each once, to its end, or to what is there when nothing can follow here. @throws {RunUnknown} */
  follow(runId: string): AsyncIterable<ExportedEvent>;
  /** A run after an event; null: after its last. @throws {RunUnknown | EventUnknown} */
  state(runId: string, at: number | null): Promise<FoldedRun>;
  /** @param head hash that the last event should have; null: whatever it has @throws {RunUnknown} */
  verify(runId: string, head: string | null): Promise<VerificationResult>;
  close(): void;
}

/** A run has not come so far. */
export class EventUnknown extends CouncilError<{ readonly runId: string; readonly at: number }> {
  readonly code = 'cli.event-unknown';
  constructor({ runId, at, last }: { readonly runId: string; readonly at: number; readonly last: number }) {
    super(`Cannot find event ${at} of run "${runId}": its last one is event ${last}`, { runId, at });
  }
}

const TERMINAL: readonly string[] = ['RunCompleted', 'RunFailed'];

/** Whether no event of a run can follow. */
export function isTerminal({ type }: Pick<ExportedEvent, 'type'>): boolean {
  return TERMINAL.includes(type);
}
