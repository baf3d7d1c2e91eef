/** Reads of the embedded log, a page at a time, so that no read delays the appends for long. */
import type { DatabaseSyncInstance, StatementSyncInstance } from '@photostructure/sqlite';
import { isRow, numberIn, textIn } from './cells.js';
import type { Page, PageQuery } from './messages.js';
import { eventsOn } from './messages.js';
import type { AllRange, RecordedEvent, StreamRange } from '../port.js';

/** Most events on a page. */
const PAGE_EVENTS = 512;
/** Most characters on a page if the reader sets no bound of its own; a larger event has a page of its own. */
export const PAGE_CHARS = 1024 * 1024;

/** Most positions scanned for one page when filtering by category: about 4 ms. */
const PAGE_POSITIONS = 4096;

/** Rows that one call gives, at most: it costs half of one call a row. */
const ROWS_AT_ONCE = 128;
/** Rows of the first call, by which the size of the others is judged. */
const ROWS_AT_FIRST = 4;

const EVENT = 'e.id, e.type, e.data, e.metadata, e.position, e.revision';

/** LEFT JOIN: an event without a stream is damage, never passed over. */
const ALL = `
  SELECT ${EVENT}, s.name FROM events e LEFT JOIN streams s ON s.id = e.stream
  WHERE e.position > ? AND e.position <= ?`;

const CATEGORY = `substr(s.name, 1, instr(s.name || '-', '-') - 1)`;

const STREAM = `
  SELECT ${EVENT} FROM streams s CROSS JOIN events e ON e.stream = s.id
  WHERE s.name = ?`;

/** Columns of both. */
const [DATA, METADATA, POSITION, REVISION, STREAM_NAME] = [2, 3, 4, 5, 6];

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
    const [read, step] = query.backwards ? [backwards, -1] : [forwards, 1];
    let from = query.from ?? (query.backwards ? Number.MAX_SAFE_INTEGER : 0);
    const { rows, isFull } = collect({ ...query, max: Math.min(query.max, PAGE_EVENTS) }, (last, most) => {
      if (last !== null) from = numberIn(last, REVISION) + step;
      return read(query.stream, from, most);
    });
    const end = rows.at(-1);
    return {
      streams: query.stream,
      ...cellsOf(rows),
      end: isFull && end !== undefined ? numberIn(end, REVISION) : null,
    };
  }

  function pageOfAll({ after, until, categories, max, chars }: AllQuery): Page {
    const end = categories === null ? until : Math.min(until, after + PAGE_POSITIONS);
    const names = categories === null ? null : JSON.stringify(categories);
    const { rows, isFull } = collect({ max: Math.min(max, PAGE_EVENTS), chars }, (last, most) => {
      const from = last === null ? after : numberIn(last, POSITION);
      return names === null ? all(from, end, most) : some(from, end, names, most);
    });
    const last = rows.at(-1);
    const seen = isFull && last !== undefined ? numberIn(last, POSITION) : end;
    const streams = rows.map((row) => textIn(row, STREAM_NAME));
    return { streams, ...cellsOf(rows), end: seen < until ? seen : null };
  }

  return (query) => (query.of === 'stream' ? pageOfStream(query) : pageOfAll(query));
}

type Row = readonly unknown[];

/** The rows that a statement finds with these parameters. */
type Read = (...parameters: (string | number)[]) => readonly Row[];

/** A statement that has failed once fails on its next use too, with any parameters, so it is prepared again. */
function reading(prepare: () => StatementSyncInstance): Read {
  let statement = prepare();
  return (...parameters) => {
    try {
      return rowsIn(statement.all(...parameters));
    } catch (error) {
      statement = prepare();
      throw error;
    }
  };
}

function rowsIn(rows: readonly unknown[]): readonly Row[] {
  if (!rows.every(isRow)) throw new TypeError('No row');
  return rows;
}

/**
 * The rows of a page, read in growing portions while they prove small: little is read beyond what the page may hold.
 *
 * @param next reads at most `most` rows after the row `last`; null: from the first
 */
function collect(
  { max: limit, chars: maxChars }: Pick<PageQuery, 'max' | 'chars'>,
  next: (last: Row | null, most: number) => readonly Row[],
): { readonly rows: readonly Row[]; readonly isFull: boolean } {
  const rows: Row[] = [];
  let [chars, most] = [0, ROWS_AT_FIRST];
  while (rows.length < limit) {
    const wanted = Math.min(most, limit - rows.length);
    const found = next(rows.at(-1) ?? null, wanted);
    for (const row of found) {
      rows.push(row);
      chars += textIn(row, DATA).length + textIn(row, METADATA).length;
      if (chars >= maxChars) return { rows, isFull: true };
    }
    if (found.length < wanted) return { rows, isFull: false };
    const fitting = Math.ceil((maxChars - chars) / (chars / rows.length));
    most = Math.min(2 * most, fitting, ROWS_AT_ONCE);
  }
  return { rows, isFull: true };
}

function cellsOf(rows: readonly Row[]): Pick<Page, 'texts' | 'numbers'> {
  const texts: string[] = [];
  const numbers: number[] = [];
  for (const row of rows) {
    for (let column = 0; column <= METADATA; column += 1) texts.push(textIn(row, column));
    numbers.push(numberIn(row, POSITION), numberIn(row, REVISION));
  }
  return { texts, numbers };
}

/** The events of a range of a stream, read page by page in its order; a missing stream has none. */
export async function* streamPages(
  page: (query: PageQuery) => Page | Promise<Page>,
  stream: string,
  range: StreamRange,
): AsyncIterable<RecordedEvent> {
  const backwards = range.direction === 'backwards';
  const { pageChars } = range;
  let left = range.max ?? Number.MAX_SAFE_INTEGER;
  // `async`, so that a page that throws at once rejects instead: the events before a damaged page are yielded first.
  const read = async (from: number | null): Promise<Page> =>
    await page({ of: 'stream', stream, from, backwards, max: left, chars: pageChars ?? PAGE_CHARS });
  const pageAfter = (end: number): ReadPage => {
    const readNext = (): Promise<Page> => read(backwards ? end - 1 : end + 1);
    // Reads the next page while the reader works on this one, unless the reader limits the memory that is held for it.
    return pageChars === undefined ? prefetched(readNext) : readNext;
  };
  for (let next = left > 0 ? read(range.from ?? null) : null; next !== null;) {
    const found: Page = await next;
    const { end } = found;
    const events = eventsOn(found);
    left -= events.length;
    const readNext = end === null || left <= 0 ? null : pageAfter(end);
    for (const event of events) yield event;
    next = readNext === null ? null : readNext();
    if (next !== null) await turnOfOthers();
  }
}

type ReadPage = () => Promise<Page>;

/** Reads at once. If the reader stops, the rejection is deliberately ignored. */
function prefetched(read: ReadPage): ReadPage {
  const page = read();
  page.catch(() => undefined);
  return () => page;
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
    const found: Page = await page({
      of: 'all',
      after: seen,
      until,
      categories: categories ?? null,
      max: left,
      chars: PAGE_CHARS,
    });
    const events = eventsOn(found);
    yield* events;
    left -= events.length;
    seen = found.end;
  }
}
