/**
 * Reads the readable events of a corrupt log. Skips each unreadable event, and reports what the index holds about it.
 */
import type { DatabaseSyncInstance } from '@photostructure/sqlite';
import type { RecordedEvent } from '../port.js';
import { reasonOf } from '../../system/untrusted.js';
import { isRow, numberIn, textIn } from './cells.js';
import type { Page } from './messages.js';
import { PAGE_CHARS, pageReader } from './pages.js';

/** A place in the log whose event cannot be read. */
export interface UnreadableEvent {
  readonly position: number;
  readonly reason: string;
}

export interface Salvage {
  /** Everything up to a position, in the log's order. */
  events(last: number): Iterable<RecordedEvent | UnreadableEvent>;
  /** Newest position in the table or its index, 0 for none. */
  last(): number;
  /** Each stream's last revision as the index has it, as far as that can be read. */
  ends(): ReadonlyMap<string, number>;
}

/** Events read at once where nothing is corrupt. */
const PAGE_EVENTS = 512;

const LAST = [
  'SELECT max(position) FROM events',
  'SELECT max(position) FROM events INDEXED BY events_by_stream',
  'SELECT max(last) FROM removed',
];

const ENDS = `
  SELECT s.name, max(e.revision) FROM events e INDEXED BY events_by_stream JOIN streams s ON s.id = e.stream
  GROUP BY e.stream`;

export function salvageOf(database: DatabaseSyncInstance): Salvage {
  const read = pageReader(database);
  const between = (after: number, until: number): Page =>
    read({ of: 'all', after, until, categories: null, max: PAGE_EVENTS, chars: PAGE_CHARS });

  function* one(position: number): Generator<RecordedEvent | UnreadableEvent> {
    try {
      yield* between(position - 1, position).events;
    } catch (error) {
      yield { position, reason: reasonOf(error) };
    }
  }

  return {
    *events(last) {
      for (let after = 0; after < last;) {
        const until = Math.min(last, after + PAGE_EVENTS);
        const page = orNull(() => between(after, until));
        if (page !== null) yield* page.events;
        else for (let position = after + 1; position <= until; position += 1) yield* one(position);
        after = page?.end ?? until;
      }
    },
    last: () => Math.max(0, ...LAST.map((sql) => orNull(() => firstNumber(database, sql)) ?? 0)),
    ends() {
      const ends = new Map<string, number>();
      orNull(() => {
        for (const row of database.prepare(ENDS, { returnArrays: true }).iterate()) {
          if (isRow(row)) ends.set(textIn(row, 0), numberIn(row, 1));
        }
      });
      return ends;
    },
  };
}

function firstNumber(database: DatabaseSyncInstance, sql: string): number {
  const row: unknown = database.prepare(sql, { returnArrays: true }).get();
  return numberIn(isRow(row) ? row : [], 0);
}

/** What a read returns, or null if it fails. */
function orNull<T>(read: () => T): T | null {
  try {
    return read();
  } catch {
    return null;
  }
}
