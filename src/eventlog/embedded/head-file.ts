/**
 * A small file beside the log that records where the log ends. With it the service detects a log that was restored from
 * an older backup, has lost its journal after a kill, or is another log. The service writes it after each commit and
 * before it acknowledges the append, and never syncs it. It is never ahead of the log. After a kill it lacks at most
 * appends that were not acknowledged; after a power cut it may lack others too.
 */
import { closeSync, constants, openSync, readFileSync, rmSync, writeSync } from 'node:fs';

/** Where a log ended. */
export interface KnownHead {
  readonly identity: string;
  /** Position of its newest event, 0 for none. */
  readonly position: number;
}

/** Longest text of the file in bytes: it is overwritten in place, padded to this. */
const HEAD_BYTES = 128;

/** The head file of a log's file. */
export function headFileOf(file: string): string {
  return `${file}-head`;
}

/** What the head file records, or null if it is missing or cannot be read, as after a power cut. */
export function knownHead(file: string): KnownHead | null {
  try {
    const known: unknown = JSON.parse(readFileSync(headFileOf(file), 'utf8'));
    return isKnownHead(known) ? known : null;
  } catch {
    return null;
  }
}

function isKnownHead(known: unknown): known is KnownHead {
  if (typeof known !== 'object' || known === null || !('identity' in known && 'position' in known)) return false;
  return typeof known.identity === 'string' && Number.isSafeInteger(known.position);
}

/** What a log has lost compared to its head file, as a sentence, or null if it has lost nothing. */
export function lossOf(found: KnownHead, known: KnownHead): string | null {
  if (found.identity !== known.identity) return 'it is not the log that this folder held before';
  const lost = known.position - found.position;
  if (lost <= 0) return null;
  return `it ends at event ${found.position}: ${lost} acknowledged after that ${lost === 1 ? 'is' : 'are'} missing`;
}

/** Removes the head file: the next start accepts the log as it is. */
export function forgetHead(file: string): void {
  rmSync(headFileOf(file), { force: true });
}

/** Keeps the head file of an open log. */
export class HeadFile {
  readonly #descriptor: number;
  readonly #identity: string;

  /** @throws {Error} the file cannot be created */
  constructor(file: string, identity: string) {
    this.#descriptor = openSync(headFileOf(file), constants.O_RDWR | constants.O_CREAT);
    this.#identity = identity;
  }

  /** Writes the newest position. */
  write(position: number): void {
    const head: KnownHead = { identity: this.#identity, position };
    writeSync(this.#descriptor, `${JSON.stringify(head).padEnd(HEAD_BYTES - 1)}\n`, 0);
  }

  close(): void {
    closeSync(this.#descriptor);
  }
}
