/**
 * The worker of the chunk index. Chunks become visible with the checkpoint they were folded to, in one transaction:
 * rows with keys after the last visible one wait for theirs. A power cut may lose the newest rows, which are folded
 * again, but never the file. Vectors stay in the file; memory holds one byte per dimension.
 */
import type { DatabaseSyncInstance } from '@photostructure/sqlite';
import { normalised } from '../embeddings/port.js';
import type { Scored } from './top-k.js';
import { byScore } from './top-k.js';
import { OFFLINE_EMBEDDING_MODEL, offlineVector } from '../embeddings/offline.js';
import { createIndexFile, metaIn, openIndexFile } from './index-file.js';
import type { ChunkRows, FullText } from './rows.js';
import { chunkRows, fullText } from './rows.js';
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
import { journalOf } from '../system/unused-bytes.js';
import { serveRpc } from '../system/worker-rpc.js';
import { IndexFull } from './errors.js';

/** Rows whose exact scores are computed: the best by int8 codes. */
const RESCORED = 300;
/** Rows of each ranking that are fused. */
const RANKED = 100;

export interface SearchStore {
  readonly progress: IndexProgress;
  write(change: ChunksWrite): void;
  search(query: ChunkQuery): readonly ScoredChunk[];
  count(): number;
  /** Zeroes what removed documents have left in the file and its journal. */
  zero(): void;
  close(): void;
}

/** Opens the file, or recreates it if it cannot be used. Vectors of two models are never in one file. */
function openSearchStore(options: IndexTask): SearchStore {
  const found = options.isLost ? null : openIndexFile(options);
  if (found === null) return storeOf(createIndexFile(options), options);
  try {
    return storeOf(found, options);
  } catch {
    found.close();
    return storeOf(createIndexFile(options), options);
  }
}

function storeOf(database: DatabaseSyncInstance, options: SearchIndexOptions): SearchStore {
  const tables = { rows: chunkRows(database), words: fullText(database), vectors: vectorsOf(options) };
  const journal = journalOf(database, options.file);
  let shown = Number(metaIn(database, 'shown') ?? 0);
  deleteAfter(shown, database, tables);
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
          for (const key of changed.gone) deleteRow(key, tables);
          saveMeta.run('checkpoint', change.checkpoint);
          saveMeta.run('shown', String(tables.rows.lastKey()));
        }
        database.exec('COMMIT');
      } catch (error) {
        if (database.isTransaction) database.exec('ROLLBACK');
        throw fieldOf(error, 'errcode') === SQLITE_FULL ? new IndexFull({ cause: error }) : error;
      }
      hidden = change.checkpoint === null ? changed : NOTHING;
      if (change.checkpoint === null) return journal.checkpointWhenDue();
      shown = tables.rows.lastKey();
      scan.remove(changed.gone);
      for (const [key, code] of changed.come) scan.add(key, code);
      journal.checkpointWhenDue();
    },
    search: (query) => found(query, tables, { scan, shown }),
    count: () => scan.count(),
    zero: () => journal.zero(),
    close() {
      database.close();
      journal.close();
    },
  };
}

interface Tables {
  readonly rows: ChunkRows;
  readonly words: FullText;
  readonly vectors: ReturnType<typeof vectorsOf>;
}

/**
 * Applies a change to the tables. Returns the changes that are not visible yet. Visible rows stay until the checkpoint.
 */
function applied({ added, removed, incomplete = [] }: ChunksWrite, hidden: ScanChange, tables: Tables): ScanChange {
  const { rows, words, vectors } = tables;
  const gone = new Set(hidden.gone);
  const come = new Map(hidden.come);
  const drop = (key: number): void => {
    if (come.delete(key)) deleteRow(key, tables);
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

function deleteRow(key: number, { rows, words }: Tables): void {
  const row = rows.find(key);
  if (row !== null) words.remove(key, row.text);
  rows.remove(key);
}

/** Deletes the rows after `shown`: they never became visible, because their last write is missing. */
function deleteAfter(shown: number, database: DatabaseSyncInstance, tables: Tables): void {
  database.exec('BEGIN');
  for (const key of tables.rows.keysAfter(shown)) deleteRow(key, tables);
  database.exec('COMMIT');
}

function found(
  { text, vector, topK, documents, ranking }: ChunkQuery,
  { rows, words, vectors }: Tables,
  { scan, shown }: { readonly scan: Int8Index; readonly shown: number },
): readonly ScoredChunk[] {
  const query = ranking === 'text' ? null : vectors.ofQuery(text, vector);
  const among = documents === undefined ? null : new Set(documents.flatMap((id) => rows.keysOf(id)));
  const near = query === null ? [] : scan.nearest(query, RESCORED, among);
  const byVector = near
    .map(({ key }) => ({
      key,
      score: query === null ? 0 : dot(query, present(rows.vector(key), 'vector of a chunk')),
    }))
    .filter(({ score }) => score > 0)
    .sort(byScore)
    .slice(0, RANKED);
  const byWords = ranking === 'vector' ? [] : words.nearest(text, RANKED, { last: shown, among });
  return reciprocalRankFusion([byVector, byWords])
    .slice(0, topK)
    .map(({ key, score }) => ({ ...present(rows.find(key), 'row of a chunk'), score }));
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

/** The given vectors, or computed vectors for the offline model. */
function vectorsOf({ model, dimensions }: SearchIndexOptions) {
  const isOffline = model === OFFLINE_EMBEDDING_MODEL;
  return {
    ofChunk(text: string, given: Float32Array | null): Float32Array {
      return given === null ? offlineVector(text) : (normalised(given) ?? new Float32Array(dimensions));
    },
    /** The vector of a query, or null if only words can rank. */
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

/**
 * Reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009): a row scores 1 / (60 + its place, from 1) in each
 * ranking that has it. 60 is the value of the paper. With a smaller one, the first places of one ranking would
 * outweigh agreement between both.
 */
const FUSION_OFFSET = 60;

/** Fuses rankings whose scores do not compare. Each is best first, and so is the result; ties by key. */
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
    zero: () => counted(store.zero()),
    search: (query) => counted(store.search(query)),
    close: () => store.close(),
  };
  serveRpc(port, { ready: counted(store.progress), api });
}
