/** Pieces of run records, each read and verified once for all clients that read the same run at about the same time. */
import { BoundedMap } from '../system/bounded-map.js';
import type { RunPiece, RunReader } from './run-reader.js';

/** Least characters of stored data in a piece, if the record holds as many. */
const PIECE_CHARS = 64 * 1024;
/** Pieces kept: each holds up to `PIECE_CHARS` and one event, which has 512 KiB at most. */
const MAX_KEPT = 16;

/** A place in the record of a run. */
export interface RecordPlace {
  /** Revision of the next event. */
  readonly next: number;
  /** Hash of the event before it, or null if it is not known. */
  readonly hash: string | null;
}

export class RecentPieces {
  readonly #reader: Pick<RunReader, 'piece'>;
  readonly #recent = new BoundedMap<string, Promise<RunPiece>>(MAX_KEPT);

  constructor(reader: Pick<RunReader, 'piece'>) {
    this.#reader = reader;
  }

  /** The events at a place; none at the head. @throws {RunCorrupt | LogUnavailable | LogClosed} */
  async read(runId: string, { next, hash }: RecordPlace): Promise<RunPiece> {
    const key = `${runId} ${next} ${hash ?? ''}`;
    const shared = await this.#recent.get(key)?.catch(() => null);
    if (shared?.isFinal === true) return shared;
    // A piece at the head is not shared: it may have been read before an event that this reader must be given.
    const reading = this.#reader.piece(runId, { from: next, previousHash: hash, maxChars: PIECE_CHARS });
    this.#recent.set(key, reading);
    const forget = (): void => {
      if (this.#recent.get(key) === reading) this.#recent.delete(key);
    };
    reading.then(({ isFinal }) => isFinal || forget(), forget);
    return await reading;
  }
}
