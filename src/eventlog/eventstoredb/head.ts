/** Finds this log's newest event on a server that may hold other logs too. */
import type { Position } from '../port.js';
import { isOurs } from './names.js';
import type { Reader } from './reads.js';
import { newestFirst } from './reads.js';
import { allEvents } from './subscription.js';

/** The position up to which the server was searched, and the position of this log's newest event, or null if it has none. */
export interface KnownHead {
  readonly upTo: Position;
  readonly head: Position | null;
}

/**
 * The head after a search of what the server has recorded since.
 *
 * @throws {LogUnavailable | LogClosed}
 */
export async function newestHead(reader: Reader, known: KnownHead): Promise<KnownHead> {
  for await (const newest of newestFirst(reader, 1)) {
    const { position: upTo } = newest;
    if (upTo <= known.upTo) return known;
    return { upTo, head: isOurs(newest) ? upTo : await searched(reader, known) };
  }
  return known;
}

/**
 * Searches from both ends at once. Forwards the server filters the events of other logs, which is fast if this log is
 * small; backwards it cannot, which is fast if the other logs have recorded little since.
 */
async function searched(reader: Reader, known: KnownHead): Promise<Position | null> {
  const over = new AbortController();
  const searching = { ...reader, closing: AbortSignal.any([reader.closing, over.signal]) };
  const searches = [backwards(searching, known), forwards(searching, known)];
  for (const search of searches) search.catch(() => undefined);
  try {
    return await Promise.race(searches);
  } finally {
    over.abort();
  }
}

async function backwards(reader: Reader, { upTo, head }: KnownHead): Promise<Position | null> {
  for await (const read of newestFirst(reader)) {
    if (read.position <= upTo) return head;
    if (isOurs(read)) return read.position;
  }
  return head;
}

async function forwards(reader: Reader, { upTo, head }: KnownHead): Promise<Position | null> {
  let last = head;
  const from = { after: upTo, begin: () => Promise.resolve(upTo) };
  for await (const { position } of allEvents(reader, from, {})) last = position;
  return last;
}
