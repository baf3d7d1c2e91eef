/** Where a run's page takes its events from, and where it keeps its view. */
import type { ReadonlySignal } from '@preact/signals';
import type { RunEvent } from '../../../client/run-events.js';
import type { LiveMessage } from '../../../client/tokens.js';
import type { StepPrompt, Verification } from '../../../generated/schemas.js';
import type { Source } from '../../record/sources.js';

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
  /** The pages that the draft cites and that only parents of the run have read. Absent: none. */
  readonly inherited?: (signal: AbortSignal) => Promise<readonly Source[]>;
  /** The file names of documents by id, of those that still exist. Absent: no names. */
  readonly documentNames?: (ids: readonly string[], signal: AbortSignal) => Promise<ReadonlyMap<string, string>>;
}

/** The query that holds the event shown and the view. */
export interface RunPlace {
  readonly query: ReadonlySignal<URLSearchParams>;
  setQuery(changes: Readonly<Record<string, string | number | null>>): void;
}
