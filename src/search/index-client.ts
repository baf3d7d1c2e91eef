/**
 * The chunk index on the main thread: calls to its worker. Its file is derived from the log, and is recreated after a
 * failure.
 */
import { OFFLINE_EMBEDDING_MODEL } from '../embeddings/offline.js';
import { orAborted } from '../system/async/deadline.js';
import { DerivedFile } from '../system/derived-file.js';
import type { System } from '../system/system.js';
import { WorkerRpc } from '../system/worker-rpc.js';
import { IndexFull, IndexLost } from './errors.js';
import type { ChunkRow } from './rows.js';

export interface SearchIndexOptions {
  readonly file: string;
  /** The log the index is folded from, and its newest position. */
  readonly log: { readonly identity: string; readonly head: string | null };
  /** Embedding model of all vectors in the file; a file of another model is rebuilt. */
  readonly model: string;
  /** Dimensions of each vector: a multiple of 8, at most 1,024. */
  readonly dimensions: number;
}

/** The task of the worker. */
export interface IndexTask extends SearchIndexOptions {
  /** Whether the file failed and the worker must recreate it. */
  readonly isLost: boolean;
}

export interface SearchIndexDeps {
  readonly system: Pick<System, 'after'>;
  /** Called with the cause when the index has failed: all documents must be indexed again, into a new file. */
  readonly onLost: (cause: unknown) => void;
  /** Called when the file could not be recreated, before the next attempt. */
  readonly onFault: (error: unknown) => void;
}

/** A chunk to add to the index. */
export interface NewChunk extends ChunkRow {
  /** Of any length, or null for the offline model, whose vectors the worker computes. */
  readonly vector: Float32Array | null;
}

export interface ChunksWrite {
  /** At most 256. A chunk replaces the one with the same document and number. */
  readonly added: readonly NewChunk[];
  /** Documents whose chunks are removed, before the others are added. */
  readonly removed: readonly string[];
  /** Documents that are ingested but lack vectors of the model: stored until they are removed. */
  readonly incomplete?: readonly string[];
  /**
   * Position up to which the log is folded with this write, or null if the changes become visible only with the next
   * write that has a checkpoint. Chunks that are not visible yet are removed at once.
   */
  readonly checkpoint: string | null;
}

export interface ChunkQuery {
  /** Cut to its first 4,096 UTF-16 units. */
  readonly text: string;
  /** The vector, or null: then the worker computes it for the offline model, and other models rank by words only. */
  readonly vector: Float32Array | null;
  /** 1..100. */
  readonly topK: number;
  /** Ids of the documents to search. Absent: all. */
  readonly documents?: readonly string[];
  /** Default: both. */
  readonly ranking?: 'vector' | 'text';
}

export interface ScoredChunk extends ChunkRow {
  /** Higher is nearer; comparable within one answer only. */
  readonly score: number;
}

/** The functions that the worker serves. */
export interface ServedIndex {
  write(change: ChunksWrite): Counted<void>;
  zero(): Counted<void>;
  search(query: ChunkQuery): Counted<readonly ScoredChunk[]>;
  close(): void;
}

/** The state of a file when it is opened. */
export interface IndexProgress {
  /** Position up to which the index was folded, or null if it is empty. */
  readonly checkpoint: string | null;
  /** Documents up to that position without vectors of the model. */
  readonly incomplete: readonly string[];
}

/** The form of all answers of the worker. */
export interface Counted<T> {
  readonly value: T;
  /** Number of visible chunks. */
  readonly count: number;
}

/** `checkpoint` and `incomplete` are those of the opened file; a recreated file is empty. */
export interface SearchIndex extends IndexProgress {
  /**
   * Resolves when the change is written, and visible if it has a checkpoint. The caller waits for it before the next
   * write, so that the worker answers searches in between. Removing a document is one write, about 0.1 ms per chunk.
   *
   * @throws {IndexLost | IndexFull}
   */
  write(change: ChunksWrite): Promise<void>;
  /** Zeroes what removed documents have left in the file. @throws {IndexLost} */
  zero(): Promise<void>;
  /** The nearest chunks, best first, ties in order of insertion. @throws {IndexLost} */
  search(query: ChunkQuery, options?: { readonly signal?: AbortSignal }): Promise<readonly ScoredChunk[]>;
  /** Number of visible chunks, as of the worker's last answer. */
  count(): number;
  /** May be called twice. */
  close(): Promise<void>;
}

/** Largest number of chunks in a write. These delay searches by about 50 ms. */
export const MAX_ADDED = 256;
/** Largest number of waiting searches. The index refuses more. At 20 ms each, the last one waits 2 s. */
const MAX_SEARCHES = 100;
const MAX_QUERY_UNITS = 4_096;
const MAX_TOP_K = 100;

/** Starts the index worker on a file, which it recreates if it cannot be used. Rejects if it cannot. */
export async function openSearchIndex(options: SearchIndexOptions, deps: SearchIndexDeps): Promise<SearchIndex> {
  let count = 0;
  const valueOf = async <T>(answer: Promise<Counted<T>>): Promise<T> => {
    const counted = await answer;
    count = counted.count;
    return counted.value;
  };
  const started = async (isLost: boolean): Promise<{ thread: IndexThread; progress: IndexProgress }> => {
    const task: IndexTask = { ...options, isLost };
    const thread: IndexThread = new WorkerRpc(new URL('./worker.js', import.meta.url), task, NAME);
    return { thread, progress: await valueOf(thread.ready()) };
  };
  const { thread, progress } = await started(false);
  const file = new DerivedFile<IndexThread>(thread, {
    ...deps,
    recreate: async () => (await started(true)).thread,
    lost: (given) => new IndexLost(given),
    harmless: (cause) => (cause.code === 'search.full' ? new IndexFull({ cause }) : null),
  });
  let searches = 0;
  return {
    ...progress,
    async write(change) {
      assertWritable(change, options);
      await valueOf(file.ask((of) => of.call('write', change)));
    },
    zero: () => valueOf(file.ask((of) => of.call('zero'))),
    async search({ text, topK, ...query }, { signal } = {}) {
      signal?.throwIfAborted();
      assertDimensions(query.vector, options);
      if (searches >= MAX_SEARCHES) throw new Error(`Cannot search chunks: ${MAX_SEARCHES} searches are waiting`);
      const bounded = { text: text.slice(0, MAX_QUERY_UNITS), topK: Math.min(topK, MAX_TOP_K) };
      searches += 1;
      const found = valueOf(file.ask((of) => of.call('search', { ...query, ...bounded })));
      const counted = found.finally(() => (searches -= 1));
      return signal === undefined ? counted : orAborted(counted, signal);
    },
    count: () => count,
    close: () => file.close(),
  };
}

type IndexThread = WorkerRpc<Counted<IndexProgress>, ServedIndex>;

const NAME = 'The chunk index';

/** Checked on this side, because an error in the worker counts as a failure of the file. */
function assertWritable({ added }: ChunksWrite, options: SearchIndexOptions): void {
  if (added.length > MAX_ADDED) {
    throw new RangeError(`Cannot add ${added.length} chunks at once: at most ${MAX_ADDED} are allowed`);
  }
  for (const { vector } of added) {
    assertDimensions(vector, options);
    if (vector === null && options.model !== OFFLINE_EMBEDDING_MODEL)
      throw new TypeError(`Cannot add a chunk without its vector of "${options.model}"`);
  }
}

function assertDimensions(vector: Float32Array | null, { model, dimensions }: SearchIndexOptions): void {
  if (vector === null || vector.length === dimensions) return;
  throw new RangeError(`Cannot use a vector of ${vector.length} dimensions: those of "${model}" have ${dimensions}`);
}
