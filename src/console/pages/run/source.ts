/** Where a run's page takes its events from, and where it keeps its view. */
import type { ReadonlySignal } from '@preact/signals';
import type { RunEvent } from '../../../client/run-events.js';
import type { LiveMessage } from '../../../client/tokens.js';
import type { DraftSource, StepPrompt, Verification } from '../../../generated/schemas.js';
import type { RunRow } from '../runs/run-row.js';

/** The source of a run's events: the service or a shared file. */
export interface RunSource {
  readonly id: string;
  /** Whether events can arrive later. */
  readonly isLive: boolean;
  /** The events after `from` (-1 for all), each once and in order, to the end of the run or an abort. */
  events(from: number, signal: AbortSignal): AsyncIterable<RunEvent>;
  /** Tokens of drafts that are being written. Absent in a shared file. */
  readonly tokens?: (signal: AbortSignal) => AsyncIterable<LiveMessage>;
  /** The service's verification of the record. Absent in a shared file. */
  readonly verify?: (signal: AbortSignal) => Promise<Verification>;
  /** The prompt of a step's last attempt. Absent in a shared file. */
  readonly prompt?: (step: number, signal: AbortSignal) => Promise<StepPrompt>;
  /** The draft at the head, as a file. Absent in a shared file. */
  readonly draft?: (format: 'md' | 'docx') => Promise<Uint8Array>;
  /** What the draft cites at the head, and its quotations. Absent: nothing is known. */
  readonly cited?: (signal: AbortSignal) => Promise<readonly DraftSource[]>;
  /** Gives each run that councils of this one have started, as it is and after its events, until the abort. Absent: nothing is known. */
  readonly followChildren?: (onRow: (row: RunRow) => void, signal: AbortSignal) => Promise<void>;
  /** The file names of documents by id, of those that still exist. Absent: no names. */
  readonly documentNames?: (ids: readonly string[], signal: AbortSignal) => Promise<ReadonlyMap<string, string>>;
}

/** The query that holds the event shown and the view. */
export interface RunPlace {
  readonly query: ReadonlySignal<URLSearchParams>;
  setQuery(changes: Readonly<Record<string, string | number | null>>): void;
}
