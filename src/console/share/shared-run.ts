/** The run in a shared file. */
import type { RunEvent } from '../../client/run-events.js';
import { runEventIn } from '../../client/run-events.js';
import type { DraftSource } from '../../generated/schemas.js';

/** Id of the element that holds the run as JSON. */
export const SHARED_RUN = 'shared-run';

export interface SharedRun {
  readonly id: string;
  /** When it was shared, ISO 8601. */
  readonly sharedAt: string;
  /** All events, in order. */
  readonly events: readonly RunEvent[];
  /** The file names of documents that its tools found, by id. */
  readonly documents?: Readonly<Record<string, string>>;
  /** What the draft cites, and its quotations. */
  readonly cited?: readonly DraftSource[];
  /** The proof that the end of the run is in the ledger, if there was one. */
  readonly proof?: SharedProof;
}

export interface SharedProof {
  /** C2SP tlog-proof. */
  readonly text: string;
  /** Number of the leaf. */
  readonly index: number;
  /** When the checkpoint was signed, ISO 8601. */
  readonly checkpointAt: string;
}

/** JSON that can neither end its `script` element nor start another. */
export function inScript(value: unknown): string {
  return JSON.stringify(value).replace(
    /[<\u2028\u2029]/g,
    (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** Parses the run. @throws {Error} the text is not a shared run */
export function sharedRunIn(text: string): SharedRun {
  const value: unknown = JSON.parse(text);
  if (!isShared(value)) throw new Error('This file does not contain a run');
  return { ...value, events: value.events.map((event) => runEventIn(JSON.stringify(event))) };
}

function isShared(value: unknown): value is Omit<SharedRun, 'events'> & { readonly events: readonly unknown[] } {
  return (
    typeof value === 'object' &&
    value !== null &&
    'id' in value &&
    typeof value.id === 'string' &&
    'sharedAt' in value &&
    typeof value.sharedAt === 'string' &&
    'events' in value &&
    Array.isArray(value.events)
  );
}
