/** The worker thread of the embedded log: owns its file, appends each batch in one durable transaction. */
import type { DatabaseSyncInstance, StatementSyncInstance } from '@photostructure/sqlite';
import type { Stats } from 'node:fs';
import { statSync } from 'node:fs';
import { endOf, isRow, numberIn, openLogFile, textIn } from './file.js';
import { HeadFile } from './head-file.js';
import type { AppendBatch, Reply, Request } from './messages.js';
import { OUTCOME, TEXTS_PER_NEW_EVENT, isRequest } from './messages.js';
import type { MessagePort } from 'node:worker_threads';
import { parentPort, workerData } from 'node:worker_threads';
import { pageReader } from './pages.js';

/** Streams whose heads are cached, the most recently appended to; about 150 bytes each. Others cost two lookups. */
const RECENT_STREAMS = 20_000;

/** Journal pages (4 KiB) that trigger a checkpoint. More: fewer checkpoints, a larger journal, slower recovery. */
const CHECKPOINT_PAGES = 4_000;

/** Time between two looks at whether the file is still there, in milliseconds. */
const LOOK_MS = 1_000;

interface StreamHead {
  readonly stream: number;
  /** Revision of its last event, -1 for none. */
  revision: number;
}

/** Holds what an append needs: prepared statements, the next keys, the heads of recent streams. */
class EmbeddedStore {
  readonly #statements: Statements;
  readonly #recent = new Map<string, StreamHead>();
  #position: number;
  #lastStream: number;

  constructor(database: DatabaseSyncInstance, position: number) {
    this.#statements = prepareAll(database);
    this.#position = position;
    this.#lastStream = firstNumber(this.#statements.lastStream.get());
  }

  /** Position of the newest event, 0 for none. */
  get head(): number {
    return this.#position;
  }

  /** A real round trip to the file. @throws {Error} it cannot be read */
  ping(): void {
    this.#statements.identity.get();
  }

  /**
   * Appends in one transaction; each append succeeds or conflicts on its own. Returns the outcomes, flat.
   *
   * @throws {Error} the storage failed: nothing may be appended any more
   */
  append(batch: AppendBatch): number[] {
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

  /** Checkpoints the journal once it is long. @throws {Error} as `append` does */
  checkpointWhenDue(): void {
    const row: unknown = this.#statements.journal.get();
    if (isRow(row) && numberIn(row, 1) >= CHECKPOINT_PAGES) this.#statements.checkpoint.get();
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
    const known = this.#recent.get(stream);
    const head = known ?? (expected === -1 ? this.#created(stream) : null) ?? this.#stored(stream);
    if (head === null) return null;
    if (known !== undefined) this.#recent.delete(stream);
    this.#recent.set(stream, head);
    if (this.#recent.size > RECENT_STREAMS) this.#forgetOldest();
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

  #forgetOldest(): void {
    for (const stream of this.#recent.keys()) {
      this.#recent.delete(stream);
      return;
    }
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
    journal: prepare('PRAGMA wal_checkpoint(NOOP)'),
    checkpoint: prepare('PRAGMA wal_checkpoint(PASSIVE)'),
  };
}

function firstNumber(row: unknown): number {
  return numberIn(isRow(row) ? row : [], 0);
}

// The thread: answers requests one after the other, in order.

const file: unknown = workerData;
if (parentPort !== null && typeof file === 'string') serve(parentPort, file);

function serve(port: MessagePort, file: string): void {
  const reply = (message: Reply): void => port.postMessage(message);
  try {
    const database = openLogFile(file);
    const { identity, position } = endOf(database);
    const store = new EmbeddedStore(database, position);
    const answer = answerer({ database, store, headFile: new HeadFile(file, identity), place: placeOf(file) }, reply);
    port.on('message', (message: unknown) => {
      if (!isRequest(message)) throw new TypeError('The event log sent its thread no request');
      answer(message);
      // Without its port the thread has nothing to wait for, and ends.
      if (message.kind === 'close') port.close();
    });
    reply({ kind: 'opened', identity, head: position });
  } catch (error) {
    const reason = reasonOf(error);
    reply({ kind: 'refused', held: reason.includes('database is locked'), reason });
    port.close();
  }
}

/** Notices that the file under its name is no longer the one that is open: what is written then would be lost. */
interface Place {
  /** @throws {Error} it is gone, or another lies there */
  assertHeld(): void;
}

function placeOf(file: string): Place {
  const opened = statSync(file);
  return {
    assertHeld() {
      if (isStill(opened, file)) return;
      throw new Error(`"${file}" was removed or replaced while it was open`);
    },
  };
}

/** Whether a file is still the one that it was; also where that cannot be told, as in a folder that may not be searched. */
function isStill(opened: Stats, file: string): boolean {
  try {
    const found = statSync(file, { throwIfNoEntry: false });
    return found?.ino === opened.ino && found.dev === opened.dev;
  } catch {
    return true;
  }
}

interface Opened {
  readonly database: DatabaseSyncInstance;
  readonly store: EmbeddedStore;
  readonly headFile: HeadFile;
  readonly place: Place;
}

function answerer({ database, store, headFile, place }: Opened, reply: (message: Reply) => void) {
  const read = pageReader(database);
  let broken: string | null = null;

  /** A failed write is not retried: what a second try reports as durable may not be (lost page cache after fsync). */
  function write(act: () => void): void {
    try {
      act();
    } catch (error) {
      broken = reasonOf(error);
      reply({ kind: 'broken', reason: broken });
    }
  }

  // Also where nobody writes or asks: another process may already have begun a log in its place.
  const look = setInterval(() => broken ?? write(() => place.assertHeld()), LOOK_MS).unref();

  function attempt(act: () => Reply): void {
    try {
      reply(act());
    } catch (error) {
      reply({ kind: 'failed', reason: reasonOf(error) });
    }
  }

  return (request: Request): void => {
    if (broken !== null) return reply({ kind: 'broken', reason: broken });
    switch (request.kind) {
      case 'append':
        return write(() => {
          const outcomes = store.append(request.batch);
          place.assertHeld();
          headFile.reached(store.head);
          reply({ kind: 'appended', outcomes });
          store.checkpointWhenDue();
        });
      case 'page':
        return attempt(() => ({ kind: 'page', page: read(request.query) }));
      case 'ping':
        return write(() => {
          place.assertHeld();
          attempt(() => {
            store.ping();
            return { kind: 'done' };
          });
        });
      case 'close':
        return attempt(() => {
          clearInterval(look);
          headFile.close();
          database.close();
          return { kind: 'done' };
        });
      default:
        return request satisfies never;
    }
  };
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
