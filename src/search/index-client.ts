/** The index of passages as the main thread sees it: calls to the passages worker. */
import { Worker } from 'node:worker_threads';
import { WorkerRpc } from '../system/worker-rpc.js';
import type { ChunkRow } from './rows.js';

export interface SearchIndexOptions {
  readonly file: string;
  /** The log the passages are folded from, and its newest position. */
  readonly log: { readonly identity: string; readonly head: string | null };
  /** Of all vectors in the file; another one than the file's begins it anew. */
  readonly model: string;
  /** Of each vector, a multiple of 8, at most 1,024. */
  readonly dimensions: number;
}

/** A passage to be found from now on. */
export interface NewChunk extends ChunkRow {
  /** Null: computed in the worker, where the model is the offline one. Of any length but 0: it is normalised here. */
  readonly vector: Float32Array | null;
}

export interface ChunksWrite {
  /** At most 256. A chunk that is there already takes the place of the earlier one. */
  readonly added: readonly NewChunk[];
  /** Documents, all of whose passages go. They go before the others come. */
  readonly removed: readonly string[];
  /** Documents that are ingested and lack vectors of the model: remembered until they are removed. */
  readonly incomplete?: readonly string[];
  /**
   * Position up to which all is folded with this. Null: more comes, and what this adds and removes is seen with the
   * next write that has one; what is hidden yet goes at once when it is removed.
   */
  readonly checkpoint: string | null;
}

export interface ChunkQuery {
  /** Its first 4,096 UTF-16 units count. */
  readonly text: string;
  /** Null: computed in the worker where the model is the offline one; of another model, words alone rank then. */
  readonly vector: Float32Array | null;
  /** 1..100. */
  readonly topK: number;
  /** Both when absent. */
  readonly ranking?: 'vector' | 'text';
}

export interface ScoredChunk extends ChunkRow {
  /** Higher is nearer; comparable within one answer only. */
  readonly score: number;
}

export type SearchCall =
  | { readonly call: 'write'; readonly change: ChunksWrite }
  | { readonly call: 'search'; readonly query: ChunkQuery }
  | { readonly call: 'close' };

/** What a file holds when it is opened. */
export interface IndexProgress {
  /** Position the passages were folded to; null: nothing is folded yet, or nothing that can be trusted. */
  readonly checkpoint: string | null;
  /** Documents up to there that lack vectors of the model. */
  readonly incomplete: readonly string[];
}

/** What the worker answers, when it is ready too. */
export interface Counted {
  readonly value: unknown;
  /** Passages that can be found. */
  readonly count: number;
}

export interface SearchIndex extends IndexProgress {
  /**
   * Resolves once it is written, and found if it has a checkpoint. To be awaited before the next: searches are answered
   * in between. A document goes in one write, about 0.1 ms a passage.
   */
  write(change: ChunksWrite): Promise<void>;
  /** The nearest passages, best first, ties in the order in which they came. */
  search(query: ChunkQuery, options?: { readonly signal?: AbortSignal }): Promise<readonly ScoredChunk[]>;
  /** Passages that can be found, as of the worker's last answer. */
  count(): number;
  /** Resolves once it answers nothing any more, closed or failed, with why. */
  readonly stopped: Promise<Error>;
  /** May be called twice. */
  close(): Promise<void>;
}

/** A write holds up the searches behind it: this many take some 50 ms. */
export const MAX_ADDED = 256;
/** Searches that wait at once; another is refused. At 20 ms each, the last has waited 2 s. */
const MAX_SEARCHES = 100;
const MAX_QUERY_UNITS = 4_096;
const MAX_TOP_K = 100;

/** Starts the passages worker on a file; rejects when the file cannot be opened. */
export async function openSearchIndex(options: SearchIndexOptions): Promise<SearchIndex> {
  const worker = new Worker(new URL('./worker.js', import.meta.url), { workerData: options });
  const calls = new WorkerRpc<SearchCall>(worker, 'The passage index');
  let count = 0;
  // The worker answers each call with what passages-store.ts returns for it.
  const valueOf = async <T>(answer: Promise<unknown>): Promise<T> => {
    const answered = (await answer) as Counted;
    count = answered.count;
    return answered.value as T;
  };
  const progress = await valueOf<IndexProgress>(calls.ready());
  let searches = 0;
  return {
    ...progress,
    async write(change) {
      if (change.added.length > MAX_ADDED) {
        throw new RangeError(`Cannot add ${change.added.length} passages at once: at most ${MAX_ADDED} are`);
      }
      await valueOf(calls.call({ call: 'write', change }));
    },
    async search({ text, topK, ...query }, { signal } = {}) {
      signal?.throwIfAborted();
      if (searches >= MAX_SEARCHES) throw new Error(`Cannot search passages: ${MAX_SEARCHES} searches wait`);
      const bounded = { text: text.slice(0, MAX_QUERY_UNITS), topK: Math.min(topK, MAX_TOP_K) };
      searches += 1;
      const found = valueOf<readonly ScoredChunk[]>(calls.call({ call: 'search', query: { ...query, ...bounded } }));
      return unlessAborted(
        found.finally(() => (searches -= 1)),
        signal,
      );
    },
    count: () => count,
    stopped: calls.stopped,
    close: () => calls.close({ call: 'close' }),
  };
}

/** The worker's answer comes all the same, and is dropped. */
function unlessAborted<T>(answered: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return answered;
  return new Promise((resolve, reject) => {
    const stop = (): void =>
      reject(signal.reason instanceof Error ? signal.reason : new Error('The search was aborted'));
    signal.addEventListener('abort', stop, { once: true });
    answered.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop));
  });
}
