/** Writes the embedded log's file, in its thread: appends in durable transactions, and reports a full or damaged file. */
import type { DatabaseSyncInstance, StatementSyncInstance } from '@photostructure/sqlite';
import { faultOf } from './faults.js';
import { isRow, numberIn, textIn } from './cells.js';
import { endOf } from './file.js';
import type { AppendBatch } from './messages.js';
import { OUTCOME, TEXTS_PER_NEW_EVENT } from './messages.js';
import { MAX_APPEND_BYTES } from '../port.js';
import { BoundedMap } from '../../system/bounded-map.js';

/** Streams whose heads are cached, the most recently appended to; about 150 bytes each. Others cost two lookups. */
const RECENT_STREAMS = 20_000;

/** Journal pages (4 KiB) that trigger a checkpoint. More: fewer checkpoints, a larger journal, slower recovery. */
const CHECKPOINT_PAGES = 4_000;

/** Free bytes from which on a disk that was full is one no more: for the largest append, in the journal and the file. */
const ROOM_BYTES = 4 * MAX_APPEND_BYTES;

interface StreamHead {
  readonly stream: number;
  /** Revision of its last event, -1 for none. */
  revision: number;
}

/** Holds what an append needs: prepared statements, the next keys, the heads of recent streams. */
export class EmbeddedStore {
  readonly #database: DatabaseSyncInstance;
  readonly #statements: Statements;
  readonly #recent = new BoundedMap<string, StreamHead>(RECENT_STREAMS);
  #position: number;
  #lastStream: number;
  readonly #freeBytes: () => number;
  #isFull = false;

  /** @param freeBytes room on the file's disk */
  constructor(database: DatabaseSyncInstance, position: number, freeBytes: () => number) {
    this.#database = database;
    this.#freeBytes = freeBytes;
    this.#statements = prepareAll(database);
    this.#position = position;
    this.#lastStream = firstNumber(this.#statements.lastStream.get());
  }

  /** Position of the newest event, 0 for none. */
  get head(): number {
    return this.#position;
  }

  /**
   * A real round trip to the file; to its disk too, as long as that is full.
   *
   * @throws {Error} it cannot be read, or still cannot be written
   */
  ping(): void {
    this.#statements.identity.get();
    if (!this.#isFull) return;
    this.#statements.touch.run();
    this.#lookForRoom();
  }

  /** Whether the disk was full at an append, and has not had room for the largest one since. */
  get isFull(): boolean {
    return this.#isFull;
  }

  /** Reports "full" until the largest append fits; otherwise only small appends would succeed. */
  #lookForRoom(): void {
    if (this.#isFull) this.#isFull = this.#freeBytes() < ROOM_BYTES;
  }

  /**
   * Appends in one transaction; each append succeeds or conflicts on its own. If the disk is full, none succeeds. An append
   * that meets damage fails alone: the others are made without it. Returns the outcomes, flat.
   *
   * @throws {Error} the storage failed: nothing may be appended any more
   */
  append(batch: AppendBatch): readonly number[] {
    try {
      const outcomes = this.#appendAll(batch);
      this.#lookForRoom();
      return outcomes;
    } catch (error) {
      const fault = faultOf(error);
      if (fault === null) throw error;
      this.#undo();
      if (fault === 'full') this.#isFull = true;
      const appends = appendsIn(batch);
      if (fault === 'damage' && appends.length > 1) return appends.flatMap((each) => this.append(each));
      return appends.flatMap(() => [OUTCOME[fault], -1, 0]);
    }
  }

  /**
   * Checkpoints the journal once it is long, or has no room to grow: it then begins again at its start. Where there is
   * no room for that either, the journal is kept.
   *
   * @throws {Error} as `append` does
   */
  checkpointWhenDue(): void {
    const row: unknown = this.#statements.journal.get();
    const isDue = this.#isFull || (isRow(row) && numberIn(row, 1) >= CHECKPOINT_PAGES);
    if (!isDue) return;
    try {
      this.#statements.checkpoint.get();
    } catch (error) {
      if (faultOf(error) !== 'full') throw error;
    }
  }

  #appendAll(batch: AppendBatch): readonly number[] {
    const outcomes: number[] = [];
    this.#statements.begin.run();
    let text = 0;
    for (let i = 0; i < batch.streams.length; i += 1) {
      const append = {
        stream: textIn(batch.streams, i),
        expected: numberIn(batch.expected, i),
        count: numberIn(batch.counts, i),
      };
      outcomes.push(...this.#appendOne(append, batch.texts, text));
      text += append.count * TEXTS_PER_NEW_EVENT;
    }
    this.#statements.commit.run();
    return outcomes;
  }

  /** Back to what is stored: what memory knows beyond it was not written. */
  #undo(): void {
    if (this.#database.isTransaction) this.#statements.rollback.run();
    this.#recent.clear();
    this.#position = endOf(this.#database).position;
    this.#lastStream = firstNumber(this.#statements.lastStream.get());
  }

  #appendOne(append: Append, texts: readonly string[], first: number): readonly [number, number, number] {
    const head = this.#headOf(append);
    if (head === null) return [OUTCOME.conflict, -1, 0];
    if (head.revision !== append.expected) return this.#repeatedOrConflict(append, head, texts, first);
    for (let i = 0, text = first; i < append.count; i += 1, text += TEXTS_PER_NEW_EVENT) {
      this.#position += 1;
      head.revision += 1;
      this.#statements.insert.run(
        this.#position,
        head.stream,
        head.revision,
        texts[text] ?? null,
        texts[text + 1] ?? null,
        texts[text + 2] ?? null,
        texts[text + 3] ?? null,
      );
    }
    return [OUTCOME.written, head.revision, this.#position];
  }

  /** The same ids at the revisions they would have had are a retry, which gets the first result; else a conflict. */
  #repeatedOrConflict(
    { expected, count }: Append,
    head: StreamHead,
    texts: readonly string[],
    first: number,
  ): readonly [number, number, number] {
    const conflict = [OUTCOME.conflict, head.revision, 0] as const;
    if (head.revision < expected + count) return conflict;
    let position = 0;
    for (let i = 0; i < count; i += 1) {
      const row: unknown = this.#statements.event.get(head.stream, expected + 1 + i);
      if (!isRow(row) || textIn(row, 0) !== texts[first + i * TEXTS_PER_NEW_EVENT]) return conflict;
      position = numberIn(row, 1);
    }
    return [OUTCOME.repeated, expected + count, position];
  }

  /** The stream's head, from memory or storage; a stream that the append may begin is created; null: no such stream. */
  #headOf({ stream, expected }: Append): StreamHead | null {
    const head = this.#recent.get(stream) ?? (expected === -1 ? this.#created(stream) : null) ?? this.#stored(stream);
    if (head !== null) this.#recent.set(stream, head);
    return head;
  }

  #created(stream: string): StreamHead | null {
    if (this.#statements.create.run(this.#lastStream + 1, stream).changes === 0) return null;
    this.#lastStream += 1;
    return { stream: this.#lastStream, revision: -1 };
  }

  #stored(stream: string): StreamHead | null {
    const row: unknown = this.#statements.stream.get(stream);
    return isRow(row) ? { stream: numberIn(row, 0), revision: numberIn(row, 1) } : null;
  }
}

interface Append {
  readonly stream: string;
  readonly expected: number;
  readonly count: number;
}

type Statements = ReturnType<typeof prepareAll>;

function prepareAll(database: DatabaseSyncInstance) {
  const prepare = (sql: string): StatementSyncInstance => database.prepare(sql, { returnArrays: true });
  return {
    begin: prepare('BEGIN IMMEDIATE'),
    commit: prepare('COMMIT'),
    rollback: prepare('ROLLBACK'),
    insert: prepare(
      'INSERT INTO events (position, stream, revision, id, type, data, metadata) VALUES (?, ?, ?, ?, ?, ?, ?)',
    ),
    create: prepare('INSERT INTO streams (id, name) VALUES (?, ?) ON CONFLICT (name) DO NOTHING'),
    stream: prepare(
      'SELECT id, (SELECT coalesce(max(revision), -1) FROM events WHERE stream = streams.id) FROM streams WHERE name = ?',
    ),
    event: prepare('SELECT id, position FROM events WHERE stream = ? AND revision = ?'),
    lastStream: prepare('SELECT coalesce(max(id), 0) FROM streams'),
    identity: prepare('SELECT identity FROM log'),
    touch: prepare('UPDATE log SET identity = identity'),
    journal: prepare('PRAGMA wal_checkpoint(NOOP)'),
    checkpoint: prepare('PRAGMA wal_checkpoint(PASSIVE)'),
  };
}

function firstNumber(row: unknown): number {
  return numberIn(isRow(row) ? row : [], 0);
}

/** Each append of a batch as a batch of its own. */
function appendsIn({ streams, expected, counts, texts }: AppendBatch): readonly AppendBatch[] {
  let text = 0;
  return streams.map((stream, i) => {
    const count = numberIn(counts, i);
    const end = text + count * TEXTS_PER_NEW_EVENT;
    const append = {
      streams: [stream],
      expected: [numberIn(expected, i)],
      counts: [count],
      texts: texts.slice(text, end),
    };
    text = end;
    return append;
  });
}
