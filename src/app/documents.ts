/** The documents of this instance: ingested, indexed, searched, verified. */
import { join } from 'node:path';
import type { CitedChunk, DocumentQuery } from '../council/tools/pdf-reader.js';
import { findChunks } from '../council/tools/pdf-reader.js';
import { DocumentCorrupt, DocumentUnknown } from '../documents/errors.js';
import type { DocumentRecord } from '../documents/events.js';
import { isDecisive } from '../documents/events.js';
import type { Ingested, UploadedFile } from '../documents/store.js';
import { DocumentStore } from '../documents/store.js';
import type { ChunkRange, NumberedChunk } from '../documents/stored-chunks.js';
import type { CorruptDocuments, DocumentCheck } from '../documents/verify.js';
import { OFFLINE_EMBEDDING_MODEL } from '../embeddings/offline.js';
import type { Embeddings } from '../embeddings/port.js';
import { embeddingsOf, reportFailureOnce, isPermanent } from '../embeddings/provider.js';
import type { Position, RecordedEvent } from '../eventlog/port.js';
import { EXTRACT_LIMITS, pdfExtractor } from '../pdf/extract.js';
import { ViewsLost } from '../projections/errors.js';
import type { EventConsumer, Projector } from '../projections/projector.js';
import type { History } from '../projections/run-history.js';
import type { ChunkSearch } from '../search/document-search.js';
import { documentSearch } from '../search/document-search.js';
import { openSearchIndex } from '../search/index-client.js';
import type { SearchIndexerOptions } from '../search/indexer.js';
import { SearchIndexer } from '../search/indexer.js';
import type { ContextConfig, ContextDeps } from './context-deps.js';
import { DocumentAudits } from './document-audits.js';
import type { OpenedRecord } from './record.js';
import { ServiceStopping } from '../errors.js';
import { wait } from '../system/async/deadline.js';
import type { System } from '../system/system.js';

/** How long the service tries an append to a document, in milliseconds, before it answers the upload with 503. */
const APPEND_DEADLINE_MS = 10_000;

/** What the documents of an instance are built on. */
export interface DocumentParts extends OpenedRecord {
  readonly history: History;
  readonly projector: Projector;
  readonly corruptDocuments: CorruptDocuments;
}

/** @throws {ConfigInvalid} for embeddings that cannot be used */
export async function createDocuments(
  config: Pick<ContextConfig, 'embeddings' | 'pdfTimeoutMs' | 'proxies'>,
  deps: ContextDeps,
  parts: DocumentParts,
): Promise<Documents> {
  const { system, logger, overrides = {} } = deps;
  const { log, history, corruptDocuments, instanceId } = parts;
  const embeddings = reportFailureOnce(
    await embeddingsOf(config.embeddings, { proxies: config.proxies, system }),
    (err) => logger.error({ err }, 'documents: cannot make vectors'),
  );
  const recordsVectors = embeddings.model !== OFFLINE_EMBEDDING_MODEL;
  const limits = { ...EXTRACT_LIMITS, timeoutMs: config.pdfTimeoutMs };
  const extractor = overrides.extractor ?? pdfExtractor({ system, pid: process.pid, limits });
  const isCorrupt = (documentId: string): boolean => corruptDocuments.has(documentId);
  const recording = { embeddings, recordsVectors, appendDeadlineMs: APPEND_DEADLINE_MS };
  const store = new DocumentStore({ log, system, instanceId, extractor, ...recording });
  const onFault = (err: unknown): void => {
    if (err instanceof DocumentCorrupt) corruptDocuments.found(err);
    else logger.error({ err }, 'documents: fault');
  };
  const vectors = new VectorCompleter({ store, system, onFault });
  const indexer = new SearchIndexer({
    log,
    system,
    onFault,
    onIncomplete: (documentId: string) => vectors.complete(documentId),
    model: recordsVectors ? embeddings.model : null,
    open: indexOpener(deps, { ...parts, embeddings, onFault }),
  });
  const filenameOf = (id: string): Promise<string | null> => filenameIn({ history, store }, id);
  const chunkSearch = documentSearch({ indexer, embeddings, recordsVectors, filenameOf, isCorrupt });
  const audits = new DocumentAudits({ ...parts, system, logger });
  return new Documents({ ...parts, store, indexer, vectors, audits, chunkSearch });
}

/** Opens the search index with the first document. The index file may be ahead of the log's head at the start. */
function indexOpener(
  { dataDir, system, logger }: ContextDeps,
  {
    log,
    identity,
    embeddings: { model, dimensions },
    onFault,
  }: OpenedRecord & { readonly embeddings: Embeddings; readonly onFault: (error: unknown) => void },
): SearchIndexerOptions['open'] {
  return async (reopen) => {
    const at = { identity, head: await log.head() };
    const file = join(dataDir.viewsDir, 'passages.sqlite');
    const onLost = (err: unknown): void => {
      logger.error({ err }, 'documents: the search index failed; rebuilding it from the log');
      reopen();
    };
    return await openSearchIndex({ file, log: at, model, dimensions }, { system, onFault, onLost });
  };
}

export interface DocumentsDeps extends DocumentParts {
  readonly store: DocumentStore;
  readonly indexer: SearchIndexer;
  readonly vectors: VectorCompleter;
  readonly audits: DocumentAudits;
  readonly chunkSearch: ChunkSearch;
}

export class Documents implements EventConsumer {
  readonly categories = ['document'];
  readonly #deps: DocumentsDeps;

  constructor(deps: DocumentsDeps) {
    this.#deps = deps;
  }

  /** The search of agents. */
  get chunkSearch(): ChunkSearch {
    return this.#deps.chunkSearch;
  }

  /** Whether all documents from before the start have become searchable. It stays true once it is true. */
  get hasCaughtUp(): boolean {
    return this.#deps.indexer.hasCaughtUp;
  }

  /** The document, or null if there is none. @throws {DocumentCorrupt} */
  async find(documentId: string): Promise<DocumentRecord | null> {
    const { corruptDocuments, store } = this.#deps;
    corruptDocuments.assertNotCorrupt(documentId);
    return await corruptDocuments.noting(store.find(documentId));
  }

  /** Chunks of a document, in order, or null if there is no such document. @throws {DocumentCorrupt} */
  async chunks(documentId: string, range: ChunkRange): Promise<readonly NumberedChunk[] | null> {
    const { corruptDocuments, store } = this.#deps;
    corruptDocuments.assertNotCorrupt(documentId);
    return await corruptDocuments.noting(store.chunks(documentId, range));
  }

  /** The chunks that an agent gets for a query, best first. Throws the errors of the search. */
  search(query: DocumentQuery, options: { readonly signal: AbortSignal }): Promise<readonly CitedChunk[]> {
    return findChunks(this.#deps.chunkSearch, query, options);
  }

  /** Reads and checks a document's whole record and its stored view, or returns null if there is no such document. */
  verify(documentId: string): Promise<DocumentCheck | null> {
    return this.#deps.audits.verify(documentId);
  }

  /** Records an uploaded file. Resolves once it is durable. */
  async ingest(file: UploadedFile): Promise<Ingested> {
    const { corruptDocuments, store } = this.#deps;
    const ingested = await corruptDocuments.noting(store.ingest(file));
    // The ingestion has read and verified the events that count, so the document is not corrupt.
    corruptDocuments.forget(file.id);
    return ingested;
  }

  /** Resolves once the document can be found here; rejects when the signal is aborted before. */
  async waitUntilSearchable({ position }: Ingested, signal: AbortSignal): Promise<void> {
    await this.#deps.projector.waitFor(position);
    await this.#deps.indexer.waitFor(position, signal);
  }

  /** Takes an erased document out of the search, before it may be uploaded again. */
  onDocumentErased(documentId: string): void {
    const { corruptDocuments, indexer } = this.#deps;
    indexer.removeCorrupt(documentId);
    corruptDocuments.forget(documentId);
  }

  /** Zeroes what erased documents have left in the index. */
  async zeroErased(): Promise<void> {
    await this.#deps.indexer.zeroRemoved();
  }

  /** Indexes an event of a document. */
  onEventRecorded(event: RecordedEvent): void {
    this.#deps.indexer.enqueue(event);
    if (isDecisive(event)) this.#deps.audits.onDocumentChanged(event);
  }

  onDocumentCorrupt({ data: { documentId } }: DocumentCorrupt): void {
    this.#deps.indexer.removeCorrupt(documentId);
  }

  /** Starts the indexer at the history's checkpoint. */
  async start(): Promise<void> {
    const { history, indexer } = this.#deps;
    const hasDocuments = await history.hasDocuments().catch(ifViewsLost(() => false));
    // After a loss the checkpoint is null, so the projector delivers all documents again.
    indexer.start(history.checkpoint, { hasDocuments });
  }

  /** Makes the chunks from before the start searchable, once the projector has delivered all events from before it. */
  markHistoryDelivered(): void {
    this.#deps.indexer.markHistoryDelivered();
  }

  /** Looks for corrupt records. Resolves after at most 100 ms; the check then continues in the background. */
  check(): Promise<void> {
    return this.#deps.audits.check();
  }

  /** @param position up to which the log is folded */
  async stop(position: Position | null): Promise<void> {
    const { store, indexer, vectors, audits } = this.#deps;
    vectors.abort();
    await Promise.all([store.stop(), vectors.settled(), audits.stop()]);
    await indexer.stop(position);
  }
}

/** The name of a document's file, or null if there is no such document. Reads the log while the stored views are lost. */
async function filenameIn(
  { history, store }: { readonly history: History; readonly store: DocumentStore },
  id: string,
): Promise<string | null> {
  const document = await history.document(id).catch(ifViewsLost(() => store.find(id)));
  return document?.filename ?? null;
}

/**
 * For `catch` after a read of the stored views: returns another answer if the views are lost, otherwise throws the
 * error again.
 */
function ifViewsLost<T>(answer: () => T | Promise<T>): (error: unknown) => T | Promise<T> {
  return (error) => {
    if (error instanceof ViewsLost) return answer();
    throw error;
  };
}

/** Wait after a failure to compute or record vectors, in milliseconds. */
const RETRY_VECTORS_MS = 60_000;

interface VectorCompleterDeps {
  readonly store: Pick<DocumentStore, 'complete'>;
  readonly system: Pick<System, 'after'>;
  readonly onFault: (error: unknown) => void;
}

/** Adds missing vectors to documents, one document after the other, and tries again until all are there. */
class VectorCompleter {
  readonly #deps: VectorCompleterDeps;
  readonly #stopping = new AbortController();
  readonly #incomplete = new Set<string>();
  #running: Promise<void> | null = null;

  constructor(deps: VectorCompleterDeps) {
    this.#deps = deps;
  }

  complete(documentId: string): void {
    this.#incomplete.add(documentId);
    this.#running ??= this.#run();
  }

  /** Ends the waits for the next try. */
  abort(): void {
    this.#stopping.abort();
  }

  /** Resolves when no document is being completed. */
  async settled(): Promise<void> {
    await this.#running;
  }

  async #run(): Promise<void> {
    const { store, system, onFault } = this.#deps;
    const { signal } = this.#stopping;
    for (const documentId of this.#incomplete) {
      this.#incomplete.delete(documentId);
      try {
        await store.complete(documentId);
      } catch (error) {
        if (signal.aborted || error instanceof ServiceStopping) return;
        if (!isPermanent(error)) onFault(error);
        // These failures are permanent; all others are retried.
        if (error instanceof DocumentUnknown || error instanceof DocumentCorrupt) continue;
        await wait(system, RETRY_VECTORS_MS, signal);
        this.#incomplete.add(documentId);
      }
    }
    this.#running = null;
  }
}
