/** Reads of the embedded log, a page at a time, so that no read delays the appends for long. */
import type { DatabaseSyncInstance, StatementSyncInstance } from '@photostructure/sqlite';
import type { AllRange, RecordedEvent, StreamRange } from '../port.js';
import { StreamRemoved } from '../errors.js';
import { flatMetadata } from '../port.js';
import { isRow, numberIn, textIn } from './cells.js';
import type { Page, PageQuery } from './messages.js';
import { positionOf } from './messages.js';

/** Most events on a page. */
const PAGE_EVENTS = 512;
/** Most characters on a page if the reader sets no bound of its own; a larger event has a page of its own. */
export const PAGE_CHARS = 1024 * 1024;
/** Most positions scanned for one page when filtering by category: about 4 ms. */
const PAGE_POSITIONS = 4096;

const COLUMNS = 'e.id, e.type, e.data, e.metadata, e.position, e.revision, s.name';
const [ID, TYPE, DATA, METADATA, POSITION, REVISION, STREAM_NAME] = [0, 1, 2, 3, 4, 5, 6];

/** LEFT JOIN: an event without a stream is corrupt, and must not be skipped. */
const ALL = `
  SELECT ${COLUMNS} FROM events e LEFT JOIN streams s ON s.id = e.stream
  WHERE e.position > ? AND e.position <= ?`;

const CATEGORY = `substr(s.name, 1, instr(s.name || '-', '-') - 1)`;

const STREAM = `
  SELECT ${COLUMNS} FROM streams s CROSS JOIN events e ON e.stream = s.id
  WHERE s.name = ?`;

type StreamQuery = Extract<PageQuery, { of: 'stream' }>;
type AllQuery = Extract<PageQuery, { of: 'all' }>;

/** Answers page queries over an open log file. */
export function pageReader(database: DatabaseSyncInstance): (query: PageQuery) => Page {
  const prepare = (sql: string): Read => preparedRead(() => database.prepare(sql, { returnArrays: true }));
  const all = prepare(`${ALL} ORDER BY e.position LIMIT ?`);
  const some = prepare(`${ALL} AND ${CATEGORY} IN (SELECT value FROM json_each(?)) ORDER BY e.position LIMIT ?`);
  const forwards = prepare(`${STREAM} AND e.revision >= ? ORDER BY e.revision LIMIT ?`);
  const backwards = prepare(`${STREAM} AND e.revision <= ? ORDER BY e.revision DESC LIMIT ?`);

  const removed = prepare('SELECT 1 FROM removed WHERE stream = (SELECT id FROM streams WHERE name = ?)');

  function pageOfStream(query: StreamQuery): Page {
    const read = query.backwards ? backwards : forwards;
    const from = query.from ?? (query.backwards ? Number.MAX_SAFE_INTEGER : 0);
    const max = Math.min(query.max, PAGE_EVENTS);
    const { events, last } = collect(read(query.stream, from, max), { max, chars: query.chars });
    if (events.length > 0) return { events, end: last && numberIn(last, REVISION) };
    return { events, end: null, isRemoved: [...removed(query.stream)].length > 0 };
  }

  function pageOfAll({ after, until, categories, ...query }: AllQuery): Page {
    const scanned = categories === null ? until : Math.min(until, after + PAGE_POSITIONS);
    const max = Math.min(query.max, PAGE_EVENTS);
    const rows = categories === null ? all(after, scanned, max) : some(after, scanned, JSON.stringify(categories), max);
    const { events, last } = collect(rows, { max, chars: query.chars });
    const end = last === null ? scanned : numberIn(last, POSITION);
    return { events, end: end < until ? end : null };
  }

  return (query) => (query.of === 'stream' ? pageOfStream(query) : pageOfAll(query));
}

type Row = readonly unknown[];

/** The rows that a statement finds with these parameters. */
type Read = (...parameters: (string | number)[]) => Iterable<Row>;

/** A statement that has failed once fails on its next use too, with any parameters, so it is prepared again. */
function preparedRead(prepare: () => StatementSyncInstance): Read {
  let statement = prepare();
  return function* rows(...parameters) {
    try {
      for (const row of statement.iterate(...parameters)) if (isRow(row)) yield row;
    } catch (error) {
      statement = prepare();
      throw error;
    }
  };
}

/** The events of a page, and its last row if the page is full, or null if there are no more rows. */
function collect(
  rows: Iterable<Row>,
  { max, chars: maxChars }: Pick<PageQuery, 'max' | 'chars'>,
): { readonly events: readonly RecordedEvent[]; readonly last: Row | null } {
  const events: RecordedEvent[] = [];
  let chars = 0;
  for (const row of rows) {
    events.push(recordedEvent(row));
    chars += textIn(row, DATA).length + textIn(row, METADATA).length;
    if (events.length >= max || chars >= maxChars) return { events, last: row };
  }
  return { events, last: null };
}

function recordedEvent(row: Row): RecordedEvent {
  return {
    stream: textIn(row, STREAM_NAME),
    id: textIn(row, ID),
    type: textIn(row, TYPE),
    data: textIn(row, DATA),
    metadata: flatMetadata(textIn(row, METADATA)),
    position: positionOf(numberIn(row, POSITION)),
    revision: numberIn(row, REVISION),
  };
}

type ReadPage = (query: PageQuery) => Page | Promise<Page>;

/** The events of a range of a stream, read page by page in its order; a missing stream has none. @throws {StreamRemoved} */
export async function* streamPages(
  readPage: ReadPage,
  stream: string,
  range: StreamRange,
): AsyncIterable<RecordedEvent> {
  const { direction, pageChars: chars = PAGE_CHARS } = range;
  const backwards = direction === 'backwards';
  let next = range.from ?? null;
  let left = range.max ?? Number.MAX_SAFE_INTEGER;
  while (left > 0) {
    const page = await readPage({ of: 'stream', stream, from: next, backwards, max: left, chars });
    if (page.isRemoved === true) throw new StreamRemoved({ stream });
    const { events, end } = page;
    yield* events;
    if (end === null) return;
    left -= events.length;
    next = backwards ? end - 1 : end + 1;
  }
}

/** The events after a position, up to and including another, read page by page in the log's order. */
export async function* allPages(
  readPage: ReadPage,
  { after, until }: { readonly after: number; readonly until: number },
  { categories, max = Number.MAX_SAFE_INTEGER }: AllRange,
): AsyncIterable<RecordedEvent> {
  const query = { of: 'all', until, categories: categories ?? null, chars: PAGE_CHARS } as const;
  let [seen, left] = [after, max];
  while (left > 0) {
    const { events, end } = await readPage({ ...query, after: seen, max: left });
    yield* events;
    if (end === null) return;
    left -= events.length;
    seen = end;
  }
}
