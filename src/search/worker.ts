/**
 * The chunk index: one SQLite file that may be deleted while the service is stopped. Chunks become visible with the
 * checkpoint they were folded to, in one transaction: rows with keys after the last visible one wait for theirs. A
 * power cut may lose the newest rows, which are folded again, but never the file. Vectors stay in the file, with one
 * byte per dimension in memory. All of it is the index worker.
 */
import { rmSync, statSync } from 'node:fs';
import type { DatabaseSyncInstance } from '@photostructure/sqlite';
import { DatabaseSync } from '@photostructure/sqlite';
import { normalised } from '../embeddings/port.js';
import type { FullText } from './rows.js';
import { FULL_TEXT_SCHEMA, fullText } from './rows.js';
import type { Scored } from './top-k.js';
import { byScore } from './top-k.js';
import { OFFLINE_EMBEDDING_MODEL, offlineVector } from '../embeddings/offline.js';
import type { ChunkRows } from './rows.js';
import { CHUNKS_SCHEMA, chunkRows, textOf } from './rows.js';
import type {
  ChunkQuery,
  ChunksWrite,
  Counted,
  IndexProgress,
  IndexTask,
  ScoredChunk,
  ServedIndex,
  SearchIndexOptions,
} from './index-client.js';
import type { Int8Index } from './int8-index.js';
import { codeOf, int8Index } from './int8-index.js';
import type { MessagePort } from 'node:worker_threads';
import { parentPort, workerData } from 'node:worker_threads';
import { present } from '../system/element.js';
import { fieldOf } from '../system/untrusted.js';
import { serveRpc } from '../system/worker-rpc.js';
import { IndexFull } from './errors.js';

/** Raise it when the meaning of rows or the splitting of words changes: the file is then rebuilt. */
const INDEX_VERSION = '3';

/** Rows whose exact scores are computed: the best by int8 codes. */
const RESCORED = 300;
/** Rows of each ranking that are fused. */
const RANKED = 100;

/**
 * `cell_size_check` finds a damaged page when it is read, before its cells are used. `busy_timeout` (milliseconds): another
 * program that looks into the file may hold a lock for a moment.
 */
const SETTINGS = `PRAGMA busy_timeout = 1000; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;
  PRAGMA cell_size_check = ON;`;
/** SQLite's default. */
const PAGE_BYTES = 4_096;

const META = 'CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;';

export interface SearchStore {
  readonly progress: IndexProgress;
  write(change: ChunksWrite): void;
  search(query: ChunkQuery): readonly ScoredChunk[];
  count(): number;
  close(): void;
}

/**
 * Opens the file, or rebuilds it when it belongs to another log, version or embedding model, is ahead of the log, or
 * holds what cannot be read: vectors of two models are never in one file.
 */
function openSearchStore(options: IndexTask): SearchStore {
  const found = options.isLost ? null : open(options);
  if (found === null) return storeOf(openAnew(options), options);
  try {
    return storeOf(found, options);
  } catch {
    found.close();
    return storeOf(openAnew(options), options);
  }
}

function storeOf(database: DatabaseSyncInstance, options: SearchIndexOptions): SearchStore {
  const tables = { rows: chunkRows(database), words: fullText(database), vectors: vectorsOf(options) };
  let shown = Number(metaIn(database, 'shown') ?? 0);
  forgetAfter(shown, database, tables);
  const scan = loadedScan(tables.rows, options.dimensions);
  let hidden: ScanChange = NOTHING;
  const saveMeta = database.prepare(
    'INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value',
  );
  return {
    progress: { checkpoint: metaIn(database, 'checkpoint'), incomplete: tables.rows.incomplete() },
    write(change) {
      database.exec('BEGIN');
      let changed: ScanChange;
      try {
        changed = applied(change, hidden, tables);
        if (change.checkpoint !== null) {
          for (const key of changed.gone) forget(key, tables);
          saveMeta.run('checkpoint', change.checkpoint);
          saveMeta.run('shown', String(tables.rows.lastKey()));
        }
        database.exec('COMMIT');
      } catch (error) {
        if (database.isTransaction) database.exec('ROLLBACK');
        throw fieldOf(error, 'errcode') === SQLITE_FULL ? new IndexFull({ cause: error }) : error;
      }
      hidden = change.checkpoint === null ? changed : NOTHING;
      if (change.checkpoint === null) return;
      shown = tables.rows.lastKey();
      scan.remove(changed.gone);
      for (const [key, code] of changed.come) scan.add(key, code);
    },
    search: (query) => found(query, tables, { scan, shown }),
    count: () => scan.count(),
    close: () => database.close(),
  };
}

interface Tables {
  readonly rows: ChunkRows;
  readonly words: FullText;
  readonly vectors: ReturnType<typeof vectorsOf>;
}

/** Applies a change to the tables; returns what is not visible yet. Visible rows stay until the checkpoint. */
function applied({ added, removed, incomplete = [] }: ChunksWrite, hidden: ScanChange, tables: Tables): ScanChange {
  const { rows, words, vectors } = tables;
  const gone = new Set(hidden.gone);
  const come = new Map(hidden.come);
  const drop = (key: number): void => {
    if (come.delete(key)) forget(key, tables);
    else gone.add(key);
  };
  for (const document of removed) {
    rows.keysOf(document).forEach(drop);
    rows.markComplete(document);
  }
  for (const document of incomplete) rows.markIncomplete(document);
  for (const { vector: given, ...row } of added) {
    rows.keysAt(row.document, row.chunk).forEach(drop);
    const vector = vectors.ofChunk(row.text, given);
    const code = codeOf(vector);
    const key = rows.add(row, vector, code);
    words.add(key, row.text);
    come.set(key, code);
  }
  return { gone, come };
}

function forget(key: number, { rows, words }: Tables): void {
  const row = rows.find(key);
  if (row !== null) words.remove(key, row.text);
  rows.remove(key);
}

/** Deletes rows that never became visible because the last write is missing: their keys are after `shown`. */
function forgetAfter(shown: number, database: DatabaseSyncInstance, tables: Tables): void {
  database.exec('BEGIN');
  for (const key of tables.rows.keysAfter(shown)) forget(key, tables);
  database.exec('COMMIT');
}

function found(
  { text, vector, topK, ranking }: ChunkQuery,
  { rows, words, vectors }: Tables,
  { scan, shown }: { readonly scan: Int8Index; readonly shown: number },
): readonly ScoredChunk[] {
  const query = ranking === 'text' ? null : vectors.ofQuery(text, vector);
  const near = query === null ? [] : scan.nearest(query, RESCORED);
  const byVector = near
    .map(({ key }) => ({
      key,
      score: query === null ? 0 : dot(query, present(rows.vector(key), 'vector of a passage')),
    }))
    .filter(({ score }) => score > 0)
    .sort(byScore)
    .slice(0, RANKED);
  const byWords = ranking === 'vector' ? [] : words.nearest(text, RANKED, shown);
  return reciprocalRankFusion([byVector, byWords])
    .slice(0, topK)
    .map(({ key, score }) => ({ ...present(rows.find(key), 'row of a passage'), score }));
}

/** Pending removals and additions, which take effect with the next checkpoint. */
interface ScanChange {
  readonly gone: ReadonlySet<number>;
  readonly come: ReadonlyMap<number, Uint8Array>;
}

const NOTHING: ScanChange = { gone: new Set(), come: new Map() };

function loadedScan(rows: ChunkRows, dimensions: number): Int8Index {
  const scan = int8Index(dimensions);
  for (const { key, code } of rows.codes()) scan.add(key, code);
  return scan;
}

/** Given vectors, or computed ones for the offline model. */
function vectorsOf({ model, dimensions }: SearchIndexOptions) {
  const isOffline = model === OFFLINE_EMBEDDING_MODEL;
  return {
    ofChunk(text: string, given: Float32Array | null): Float32Array {
      return given === null ? offlineVector(text) : (normalised(given) ?? new Float32Array(dimensions));
    },
    /** Null: only words rank. */
    ofQuery(text: string, given: Float32Array | null): Float32Array | null {
      const vector = given ?? (isOffline ? offlineVector(text) : null);
      return vector && normalised(vector);
    },
  };
}

function dot(one: Float32Array, other: Float32Array): number {
  let sum = 0;
  for (let at = 0; at < one.length; at += 1) sum += (one[at] ?? 0) * (other[at] ?? 0);
  return sum;
}

/** SQLITE_FULL of https://sqlite.org/rescode.html */
const SQLITE_FULL = 13;

/** The existing file; null when it cannot be used: missing, corrupt, or folded from something else. */
function open({ file, log, model, dimensions }: SearchIndexOptions): DatabaseSyncInstance | null {
  let database: DatabaseSyncInstance | null = null;
  try {
    // SQLite reads the rest of a page that is cut off as zeroes.
    if ((statSync(file, { throwIfNoEntry: false })?.size ?? 0) % PAGE_BYTES !== 0) return null;
    database = new DatabaseSync(file);
    database.exec(SETTINGS);
    const wanted = { identity: log.identity, version: INDEX_VERSION, model, dimensions: String(dimensions) };
    const isOurs = Object.entries(wanted).every(([key, value]) => database && metaIn(database, key) === value);
    const checkpoint = metaIn(database, 'checkpoint');
    const isPast = checkpoint !== null && (log.head === null || checkpoint > log.head);
    if (isOurs && !isPast) return database;
  } catch {
    // Not a usable database: everything can be folded again.
  }
  database?.close();
  return null;
}

function openAnew({ file, log, model, dimensions }: SearchIndexOptions): DatabaseSyncInstance {
  for (const suffix of ['', '-wal', '-shm', '-journal']) rmSync(file + suffix, { force: true, recursive: true });
  const database = new DatabaseSync(file);
  database.exec(SETTINGS);
  database.exec(`${META}${CHUNKS_SCHEMA}${FULL_TEXT_SCHEMA}`);
  const save = database.prepare('INSERT INTO meta VALUES (?, ?)');
  save.run('identity', log.identity);
  save.run('version', INDEX_VERSION);
  save.run('model', model);
  save.run('dimensions', String(dimensions));
  return database;
}

function metaIn(database: DatabaseSyncInstance, key: string): string | null {
  return textOf(database.prepare('SELECT value FROM meta WHERE key = ?').get(key), 'value');
}

/**
 * Reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009): a row scores 1 / (60 + its place, from 1) in each
 * ranking that has it. 60 is their value: a smaller one makes the first places of one ranking outweigh agreement
 * between both.
 */
const FUSION_OFFSET = 60;

/** Fuses rankings whose scores do not compare, each best first; best first, ties by key. */
function reciprocalRankFusion(rankings: readonly (readonly Scored[])[]): readonly Scored[] {
  const scores = new Map<number, number>();
  for (const ranking of rankings) {
    ranking.forEach(({ key }, place) => {
      scores.set(key, (scores.get(key) ?? 0) + 1 / (FUSION_OFFSET + place + 1));
    });
  }
  return [...scores].map(([key, score]) => ({ key, score })).sort(byScore);
}

if (parentPort !== null) serve(parentPort, workerData as IndexTask);

/** Serves the index over a message port: answers one call after the other. */
function serve(port: MessagePort, options: IndexTask): void {
  const store = openSearchStore(options);
  const counted = <T>(value: T): Counted<T> => ({ value, count: store.count() });
  const api: ServedIndex = {
    write: (change) => counted(store.write(change)),
    search: (query) => counted(store.search(query)),
    close: () => store.close(),
  };
  serveRpc(port, { ready: counted(store.progress), api });
}
