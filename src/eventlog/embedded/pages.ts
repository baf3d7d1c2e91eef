/** Reads of the embedded log, a page at a time, so that no read delays the appends for long. */
import type { DatabaseSyncInstance, StatementSyncInstance } from '@photostructure/sqlite';
import { isRow, numberIn, textIn } from './cells.js';
import type { Page, PageQuery } from './messages.js';
import { eventsOn } from './messages.js';
import type { AllRange, RecordedEvent, StreamRange } from '../port.js';

/** Most events and characters on a page; a larger event has a page of its own. */
const PAGE_EVENTS = 512;
const PAGE_CHARS = 1024 * 1024;

/** Most positions scanned for one page when filtering by category: about 4 ms. */
const PAGE_POSITIONS = 4096;

const EVENT = 's.name, e.id, e.type, e.data, e.metadata, e.position, e.revision';

/** LEFT JOIN: an event without a stream is damage, never passed over. */
const ALL = `
  SELECT ${EVENT} FROM events e LEFT JOIN streams s ON s.id = e.stream
  WHERE e.position > ? AND e.position <= ?`;

const CATEGORY = `substr(s.name, 1, instr(s.name || '-', '-') - 1)`;

const STREAM = `
  SELECT ${EVENT} FROM streams s CROSS JOIN events e ON e.stream = s.id
  WHERE s.name = ?`;

type StreamQuery = Extract<PageQuery, { of: 'stream' }>;
type AllQuery = Extract<PageQuery, { of: 'all' }>;

/** Answers page queries over an open log file. */
export function pageReader(database: DatabaseSyncInstance): (query: PageQuery) => Page {
  const prepare = (sql: string): Read => reading(() => database.prepare(sql, { returnArrays: true }));
  const all = prepare(`${ALL} ORDER BY e.position LIMIT ?`);
  const some = prepare(`${ALL} AND ${CATEGORY} IN (SELECT value FROM json_each(?)) ORDER BY e.position LIMIT ?`);
  const forwards = prepare(`${STREAM} AND e.revision >= ? ORDER BY e.revision LIMIT ?`);
  const backwards = prepare(`${STREAM} AND e.revision <= ? ORDER BY e.revision DESC LIMIT ?`);

  function pageOfStream(query: StreamQuery): Page {
    const read = query.backwards ? backwards : forwards;
    const from = query.from ?? (query.backwards ? Number.MAX_SAFE_INTEGER : 0);
    const limit = Math.min(query.max, PAGE_EVENTS);
    const { texts, numbers, isFull } = read([query.stream, from, limit], limit);
    return { texts, numbers, end: isFull ? (numbers.at(-1) ?? null) : null };
  }

  function pageOfAll({ after, until, categories, max }: AllQuery): Page {
    const limit = Math.min(max, PAGE_EVENTS);
    const last = categories === null ? until : Math.min(until, after + PAGE_POSITIONS);
    const { texts, numbers, isFull } =
      categories === null
        ? all([after, last, limit], limit)
        : some([after, last, JSON.stringify(categories), limit], limit);
    const end = isFull ? (numbers.at(-2) ?? last) : last;
    return { texts, numbers, end: end < until ? end : null };
  }

  return (query) => (query.of === 'stream' ? pageOfStream(query) : pageOfAll(query));
}

/** What a statement finds with these parameters. */
type Read = (parameters: readonly (string | number)[], limit: number) => Collected;

interface Collected {
  readonly texts: readonly string[];
  readonly numbers: readonly number[];
  readonly isFull: boolean;
}

/** A statement that has failed fails once more when it is used again, whatever it is asked: it is prepared anew. */
function reading(prepare: () => StatementSyncInstance): Read {
  let statement = prepare();
  return (parameters, limit) => {
    try {
      return collect(statement.iterate(...parameters), limit);
    } catch (error) {
      statement = prepare();
      throw error;
    }
  };
}

function collect(rows: Iterable<unknown>, limit: number): Collected {
  const texts: string[] = [];
  const numbers: number[] = [];
  let chars = 0;
  for (const row of rows) {
    if (!isRow(row)) throw new TypeError('No row');
    const data = textIn(row, 3);
    const metadata = textIn(row, 4);
    texts.push(textIn(row, 0), textIn(row, 1), textIn(row, 2), data, metadata);
    numbers.push(numberIn(row, 5), numberIn(row, 6));
    chars += data.length + metadata.length;
    if (chars >= PAGE_CHARS || numbers.length === 2 * limit) return { texts, numbers, isFull: true };
  }
  return { texts, numbers, isFull: false };
}

/** The events of a range of a stream, read page by page in its order; a missing stream has none. */
export async function* streamPages(
  page: (query: PageQuery) => Page | Promise<Page>,
  stream: string,
  range: StreamRange,
): AsyncIterable<RecordedEvent> {
  const backwards = range.direction === 'backwards';
  let left = range.max ?? Number.MAX_SAFE_INTEGER;
  // Also of a reader that throws at once: what stands before a damaged page is given before that is told.
  const read = async (from: number | null): Promise<Page> =>
    await page({ of: 'stream', stream, from, backwards, max: left });
  for (let next = left > 0 ? read(range.from ?? null) : null; next !== null;) {
    const found: Page = await next;
    const { end } = found;
    const events = eventsOn(found);
    left -= events.length;
    // The next page is read while this one is worked on. If nobody goes on to it, its failure is nobody's either.
    next = end === null || left <= 0 ? null : read(backwards ? end - 1 : end + 1);
    next?.catch(() => undefined);
    for (const event of events) yield event;
    if (next !== null) await turnOfOthers();
  }
}

/**
 * Resolves once the event loop has gone round: of messages that have come, Node gives one after the other to their
 * listeners before it looks at anything else, so that a stream of many pages would be worked on in one go.
 */
function turnOfOthers(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** The events after a position, up to and with another, read page by page in the log's order. */
export async function* allPages(
  page: (query: PageQuery) => Page | Promise<Page>,
  { after, until }: { readonly after: number; readonly until: number },
  { categories, max = Number.MAX_SAFE_INTEGER }: AllRange,
): AsyncIterable<RecordedEvent> {
  let left = max;
  for (let seen: number | null = after; seen !== null && left > 0;) {
    const found: Page = await page({ of: 'all', after: seen, until, categories: categories ?? null, max: left });
    const events = eventsOn(found);
    yield* events;
    left -= events.length;
    seen = found.end;
  }
}
