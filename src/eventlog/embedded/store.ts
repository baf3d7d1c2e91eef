/** Writes the embedded log's file, in its thread: appends in durable transactions, and reports a full or corrupt file. */
import type { DatabaseSyncInstance, StatementSyncInstance } from '@photostructure/sqlite';
import { BoundedMap } from '../../system/bounded-map.js';
import { MAX_APPEND_BYTES } from '../port.js';
import { isRow, numberIn, textIn } from './cells.js';
import type { FileFault } from './faults.js';
import { faultOf } from './faults.js';
import { endOf } from './file.js';
import type { AppendOutcome, StoredAppend } from './messages.js';

/** Journal pages (4 KiB) that trigger a checkpoint. More: fewer checkpoints, a larger journal, slower recovery. */
const CHECKPOINT_PAGES = 4_000;

/** Free bytes at which a full disk has room again: for the largest append, in the journal and the file. */
const ROOM_BYTES = 4 * MAX_APPEND_BYTES;

/** Streams whose heads are cached, the most recently appended to; about 150 bytes each. Others cost two lookups. */
const CACHED_HEADS = 20_000;

interface CachedHead {
  readonly id: number;
  /** Revision of its last event, -1 for none, or REMOVED. */
  revision: number;
}

const REMOVED = -2;

/** Holds what an append needs: prepared statements, the next keys, the heads of recent streams. */
export class EmbeddedStore {
  readonly #database: DatabaseSyncInstance;
  readonly #statements: Statements;
  readonly #heads = new BoundedMap<string, CachedHead>(CACHED_HEADS);
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

  /** Whether the disk was full at an append, and has not had room for the largest one since. */
  get isFull(): boolean {
    return this.#isFull;
  }

  /**
   * Reads from the file. If the disk was full, also writes to it.
   *
   * @throws {Error} it cannot be read, or still cannot be written
   */
  ping(): void {
    this.#statements.identity.get();
    if (!this.#isFull) return;
    this.#statements.touch.run();
    this.#checkRoom();
  }

  /** The disk counts as full until the largest append fits; otherwise only small appends would succeed. */
  #checkRoom(): void {
    if (this.#isFull) this.#isFull = this.#freeBytes() < ROOM_BYTES;
  }

  /**
   * Appends in one transaction; each append succeeds or conflicts on its own. If the disk is full, none succeeds. An append
   * that meets a corrupt page fails alone: the others are written without it.
   *
   * @throws {Error} the storage failed: nothing may be appended any more
   */
  append(batch: readonly StoredAppend[]): readonly AppendOutcome[] {
    try {
      this.#statements.begin.run();
      const outcomes = batch.map((append) => this.#appendOne(append));
      this.#statements.commit.run();
      this.#checkRoom();
      return outcomes;
    } catch (error) {
      const kind = faultOf(error);
      if (kind === null) throw error;
      this.#rollback();
      if (kind === 'full') this.#isFull = true;
      if (kind === 'corrupt' && batch.length > 1) return batch.flatMap((append) => this.append([append]));
      return batch.map(() => ({ kind }));
    }
  }

  /**
   * Removes streams in one transaction. Their texts may be in the journal and in unused bytes until the caller has zeroed
   * them and called `noteZeroed`.
   *
   * @returns why nothing is removed, or null
   * @throws {Error} the storage failed: nothing may be written any more
   */
  remove(streams: readonly string[]): FileFault | null {
    try {
      this.#statements.begin.run();
      for (const stream of streams) this.#removeOne(stream);
      this.#statements.commit.run();
      return null;
    } catch (error) {
      const kind = faultOf(error);
      if (kind === null) throw error;
      this.#rollback();
      if (kind === 'full') this.#isFull = true;
      return kind;
    }
  }

  #removeOne(name: string): void {
    const head = this.#stored(name) ?? this.#createStream(name);
    if (head === null || head.revision === REMOVED) return;
    const { sums, forget, events } = this.#statements;
    const row: unknown = sums.get(head.id);
    events.run(head.id);
    forget.run(head.id, ...(isRow(row) ? [0, 1, 2].map((column) => numberIn(row, column)) : [0, 0, 0]));
    this.#heads.delete(name);
  }

  /** Whether all that was removed is zeroed. */
  get isZeroed(): boolean {
    return this.#statements.unzeroed.get() === undefined;
  }

  noteZeroed(): void {
    this.#statements.zeroed.run();
  }

  /**
   * Checkpoints the journal if it is long or the disk is full: the journal then starts over. If a checkpoint has no room
   * either, the journal stays.
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

  #rollback(): void {
    if (this.#database.isTransaction) this.#statements.rollback.run();
    this.#heads.clear();
    this.#position = endOf(this.#database).position;
    this.#lastStream = firstNumber(this.#statements.lastStream.get());
  }

  #appendOne(append: StoredAppend): AppendOutcome {
    const head = this.#headFor(append);
    if (head === null) return { kind: 'conflict', actual: 'none' };
    if (head.revision === REMOVED) return { kind: 'removed' };
    if (head.revision !== append.expected) return this.#repeatedOrConflict(append, head);
    for (const row of append.rows) {
      this.#position += 1;
      head.revision += 1;
      this.#statements.insert.run(this.#position, head.id, head.revision, ...row);
    }
    return { kind: 'written', revision: head.revision, position: this.#position };
  }

  /**
   * If the stream holds the same ids at the wanted revisions, the append is a retry and gets the first result.
   * Otherwise it conflicts.
   */
  #repeatedOrConflict({ expected, rows }: StoredAppend, head: CachedHead): AppendOutcome {
    const conflict = { kind: 'conflict', actual: head.revision < 0 ? 'none' : head.revision } as const;
    let position = 0;
    for (const [index, [id]] of rows.entries()) {
      const row: unknown = this.#statements.event.get(head.id, expected + 1 + index);
      if (!isRow(row) || textIn(row, 0) !== id) return conflict;
      position = numberIn(row, 1);
    }
    return { kind: 'repeated', revision: expected + rows.length, position };
  }

  /** The head of an append's stream, or null if it does not exist; a stream that the append may begin is created. */
  #headFor({ stream, expected }: StoredAppend): CachedHead | null {
    const head =
      this.#heads.get(stream) ?? (expected === -1 ? this.#createStream(stream) : null) ?? this.#stored(stream);
    if (head !== null) this.#heads.set(stream, head);
    return head;
  }

  /** Creates a stream; null if it exists. */
  #createStream(name: string): CachedHead | null {
    if (this.#statements.create.run(this.#lastStream + 1, name).changes === 0) return null;
    this.#lastStream += 1;
    return { id: this.#lastStream, revision: -1 };
  }

  #stored(stream: string): CachedHead | null {
    const row: unknown = this.#statements.stream.get(stream);
    if (!isRow(row)) return null;
    return { id: numberIn(row, 0), revision: numberIn(row, 2) === 1 ? REMOVED : numberIn(row, 1) };
  }
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
      `SELECT id, (SELECT coalesce(max(revision), -1) FROM events WHERE stream = streams.id),
         EXISTS (SELECT 1 FROM removed WHERE stream = streams.id)
       FROM streams WHERE name = ?`,
    ),
    event: prepare('SELECT id, position FROM events WHERE stream = ? AND revision = ?'),
    lastStream: prepare('SELECT coalesce(max(id), 0) FROM streams'),
    sums: prepare(
      'SELECT count(*), coalesce(sum(position), 0), coalesce(max(position), 0) FROM events WHERE stream = ?',
    ),
    events: prepare('DELETE FROM events WHERE stream = ?'),
    forget: prepare('INSERT INTO removed (stream, events, positions, last, is_zeroed) VALUES (?, ?, ?, ?, 0)'),
    unzeroed: prepare('SELECT 1 FROM removed WHERE is_zeroed = 0 LIMIT 1'),
    zeroed: prepare('UPDATE removed SET is_zeroed = 1 WHERE is_zeroed = 0'),
    identity: prepare('SELECT identity FROM log'),
    touch: prepare('UPDATE log SET identity = identity'),
    journal: prepare('PRAGMA wal_checkpoint(NOOP)'),
    checkpoint: prepare('PRAGMA wal_checkpoint(PASSIVE)'),
  };
}

function firstNumber(row: unknown): number {
  return numberIn(isRow(row) ? row : [], 0);
}
