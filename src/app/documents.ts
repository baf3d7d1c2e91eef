/** The documents of this instance: ingested, listed, searched. */
import { join } from 'node:path';
import { documentAudits } from './audits.js';
import { ServiceStopping } from '../errors.js';
import { CorruptDocuments } from '../documents/verify.js';
import type { DocumentCheck } from '../documents/verify.js';
import { DocumentCorrupt, DocumentUnknown } from '../documents/errors.js';
import { EXTRACT_LIMITS, pdfExtractor } from '../pdf/extract.js';
import { documentSearch } from '../search/document-search.js';
import type { DocumentRecord } from '../documents/events.js';
import { isDecisive } from '../documents/events.js';
import { OFFLINE_EMBEDDING_MODEL } from '../embeddings/offline.js';
import type { Embeddings } from '../embeddings/port.js';
import type { SearchIndexerOptions } from '../search/indexer.js';
import { SearchIndexer } from '../search/indexer.js';
import type { ChunkSearch } from '../search/document-search.js';
import { openSearchIndex } from '../search/index-client.js';
import { embeddingsOf } from '../embeddings/provider.js';
import type { Ingested, UploadedFile } from '../documents/store.js';
import { DocumentStore } from '../documents/store.js';
import type { ChunkRange, NumberedChunk } from '../documents/stored-chunks.js';
import type { CitedChunk, DocumentQuery } from '../council/tools/pdf-reader.js';
import { findChunks } from '../council/tools/pdf-reader.js';
import type { EventLog, Position, RecordedEvent } from '../eventlog/port.js';
import { ViewsLost } from '../projections/errors.js';
import type { History } from '../projections/run-history.js';
import type { Projector } from '../projections/projector.js';
import type { EngineConfig, EngineDeps } from './context.js';
import { isPermanent, reportFailureOnce } from '../embeddings/provider.js';
import { wait } from '../system/async/deadline.js';

/** How long an append to a document is tried, in milliseconds, before its upload is answered 503. */
const APPEND_DEADLINE_MS = 10_000;
/** Wait before vectors that could not be made or recorded are tried again, in milliseconds. */
const RETRY_VECTORS_MS = 60_000;

/** The documents as the HTTP layer uses them. */
export interface Documents {
  /** @throws {DocumentCorrupt} */
  find(documentId: string): Promise<DocumentRecord | null>;
  /** Chunks of a document, in order; null when it is not there. @throws {DocumentCorrupt} */
  chunks(documentId: string, range: ChunkRange): Promise<readonly NumberedChunk[] | null>;
  /** What agents are given for a query, best first. Throws as the search. */
  search(query: DocumentQuery, options: { readonly signal: AbortSignal }): Promise<readonly CitedChunk[]>;
  /** Reads and checks a document's whole record, and the stored view of it; null when nothing is known of it. */
  verify(documentId: string): Promise<DocumentCheck | null>;
  /** Resolves once it is recorded. */
  ingest(file: UploadedFile): Promise<Ingested>;
  /** Resolves once it can be found here; rejects when the signal is aborted before. */
  reached(ingested: Ingested, signal: AbortSignal): Promise<void>;
  /** Resolves once it cannot be found here any more. */
  remove(documentId: string, actor?: string | null): Promise<void>;
}

export interface DocumentServices extends Documents {
  readonly chunkSearch: ChunkSearch;
  readonly corruptDocuments: CorruptDocuments;
  /** Whether what was recorded before the start can be found, or could. */
  hasCaughtUp(): boolean;
  /** To be called with each event of a document. */
  recorded(event: RecordedEvent): void;
  /** Starts the indexer, which gets events through this projector from the history's checkpoint on. */
  start(projector: Pick<Projector, 'waitFor' | 'rebuilds'>): Promise<void>;
  /** To be called once all events from before the start have been passed in: from then on their chunks can be searched. */
  historyRead(): void;
  /** Looks for corrupt records, once everything is folded: for a while before it resolves, then in the background. */
  check(): Promise<void>;
  /** @param position up to which the projector has come */
  stop(position: Position | null): Promise<void>;
}

export interface DocumentServicesDeps {
  readonly log: EventLog;
  readonly logInfo: { readonly identity: string };
  readonly history: History;
  readonly instanceId: string;
}

type DocumentDeps = Pick<EngineDeps, 'dataDir' | 'system' | 'logger' | 'overrides'>;

/** @throws {ConfigInvalid} for embeddings that cannot be used */
export async function documentServices(
  config: Pick<EngineConfig, 'embeddings' | 'pdfTimeoutMs'>,
  { dataDir, system, logger, overrides = {} }: DocumentDeps,
  { log, logInfo, history, instanceId }: DocumentServicesDeps,
): Promise<DocumentServices> {
  const embeddings = reportFailureOnce(await embeddingsOf(config.embeddings, system), (err) =>
    logger.error({ err }, 'documents: no vectors can be made'),
  );
  const { model } = embeddings;
  const recordsVectors = model !== OFFLINE_EMBEDDING_MODEL;
  const limits = { ...EXTRACT_LIMITS, timeoutMs: config.pdfTimeoutMs };
  const extractor = overrides.extractor ?? pdfExtractor({ system, pid: process.pid, limits });
  const corruptDocuments = trackCorrupt(logger, (documentId) => indexer.removeCorrupt(documentId));
  const isCorrupt = (documentId: string): boolean => corruptDocuments.has(documentId);
  const recording = { embeddings, recordsVectors, appendDeadlineMs: APPEND_DEADLINE_MS };
  const store = new DocumentStore({ log, system, instanceId, extractor, isCorrupt, ...recording });
  const onFault = (error: unknown): void => {
    if (error instanceof DocumentCorrupt) corruptDocuments.found(error);
    else logger.error({ err: error }, 'documents: fault');
  };
  const stopping = new AbortController();
  const completer = vectorCompleter(store, { system, onFault, signal: stopping.signal });
  const indexer = new SearchIndexer({
    ...{ log, system, onFault, onIncomplete: completer.complete },
    model: recordsVectors ? model : null,
    open: indexOpener({ dataDir, system, logger, log, logInfo, embeddings, onFault }),
  });
  const filenameOf = (id: string): Promise<string | null> => filenameIn({ history, store }, id);
  let projector: Pick<Projector, 'waitFor' | 'rebuilds'> | null = null;
  const reached = async (position: Position, signal?: AbortSignal): Promise<void> => {
    await projector?.waitFor(position);
    await indexer.waitFor(position, signal);
  };
  const chunkSearch = documentSearch({ indexer, embeddings, recordsVectors, filenameOf, isCorrupt });
  const audits = documentAudits({ log, history, corruptDocuments, projector: () => projector, system, logger });
  return {
    ...{ corruptDocuments, chunkSearch, check: audits.check },
    ...documentsOf({ store, corruptDocuments, chunkSearch, reached, verify: audits.verify }),
    hasCaughtUp: () => indexer.hasCaughtUp,
    recorded(event) {
      indexer.enqueue(event);
      if (isDecisive(event)) audits.changed(event);
    },
    async start(by) {
      projector = by;
      await startIndexer(indexer, history);
    },
    historyRead: () => indexer.markHistoryDelivered(),
    async stop(position) {
      stopping.abort();
      await Promise.all([store.stop(), completer.ended(), audits.stop()]);
      await indexer.stop(position);
    },
  };
}

interface IndexOpening
  extends Pick<EngineDeps, 'dataDir' | 'system' | 'logger'>, Pick<DocumentServicesDeps, 'log' | 'logInfo'> {
  readonly embeddings: Pick<Embeddings, 'model' | 'dimensions'>;
  readonly onFault: (error: unknown) => void;
}

/** Opens the search index, with the first document: its file may then lie past the head of the start. */
function indexOpener({
  dataDir,
  log,
  logInfo,
  embeddings,
  logger,
  ...deps
}: IndexOpening): SearchIndexerOptions['open'] {
  const { model, dimensions } = embeddings;
  return async (lost) => {
    const at = { ...logInfo, head: await log.head() };
    const file = join(dataDir.viewsDir, 'passages.sqlite');
    const onLost = (err: unknown): void => {
      logger.error({ err }, 'documents: the search index failed; rebuilding it from the log');
      lost();
    };
    return await openSearchIndex({ file, log: at, model, dimensions }, { ...deps, onLost });
  };
}

/** The name of a document's file, or null if there is no such document. Reads the log while the stored views are lost. */
async function filenameIn(
  { history, store }: { readonly history: History; readonly store: DocumentStore },
  id: string,
): Promise<string | null> {
  const document = await history.document(id).catch(onLostViews(() => store.find(id)));
  return document?.filename ?? null;
}

async function startIndexer(indexer: SearchIndexer, history: History): Promise<void> {
  const hasDocuments = await history.hasDocuments().catch(onLostViews(() => false));
  // After a loss the checkpoint is null, so the projector delivers all documents again.
  indexer.start(history.checkpoint, { hasDocuments });
}

/** Handles an error of the stored views: answers in their place if they are lost, else throws it again. */
function onLostViews<T>(answer: () => T | Promise<T>): (error: unknown) => T | Promise<T> {
  return (error) => {
    if (error instanceof ViewsLost) return answer();
    throw error;
  };
}

/** @param drop takes a document out of the index */
function trackCorrupt(logger: EngineDeps['logger'], drop: (documentId: string) => void): CorruptDocuments {
  return new CorruptDocuments((error) => {
    const { documentId } = error.data;
    logger.error({ documentId, err: error }, 'document: its record is damaged');
    drop(documentId);
  });
}

interface DocumentsDeps extends Pick<Documents, 'verify'> {
  readonly store: DocumentStore;
  readonly corruptDocuments: CorruptDocuments;
  readonly chunkSearch: ChunkSearch;
  /** Resolves once what is recorded up to there is found, or found no more. */
  readonly reached: (position: Position, signal?: AbortSignal) => Promise<void>;
}

/** The documents whose records are valid. */
function documentsOf({ store, corruptDocuments, chunkSearch, reached, verify }: DocumentsDeps): Documents {
  return {
    verify,
    async find(documentId) {
      corruptDocuments.assertNotCorrupt(documentId);
      return await corruptDocuments.noting(store.find(documentId));
    },
    async chunks(documentId, range) {
      corruptDocuments.assertNotCorrupt(documentId);
      return await corruptDocuments.noting(store.chunks(documentId, range));
    },
    search: (query, options) => findChunks(chunkSearch, query, options),
    async ingest(file) {
      const ingested = await corruptDocuments.noting(store.ingest(file));
      // All that counts of its record was read for that.
      corruptDocuments.forget(file.id);
      return ingested;
    },
    reached: ({ position }, signal) => reached(position, signal),
    async remove(documentId, actor) {
      await reached(await store.remove(documentId, actor));
      corruptDocuments.forget(documentId);
    },
  };
}

/** Has missing vectors made, one document after the other, again and again until they are there. */
function vectorCompleter(
  store: DocumentStore,
  { system, onFault, signal }: { system: EngineDeps['system']; onFault: (error: unknown) => void; signal: AbortSignal },
) {
  const incomplete = new Set<string>();
  let running: Promise<void> | null = null;

  const run = async (): Promise<void> => {
    for (const documentId of incomplete) {
      incomplete.delete(documentId);
      try {
        await store.complete(documentId);
      } catch (error) {
        if (signal.aborted || error instanceof ServiceStopping) return;
        if (!isPermanent(error)) onFault(error);
        // These failures are permanent; all others are retried.
        if (error instanceof DocumentUnknown || error instanceof DocumentCorrupt) continue;
        await wait(system, RETRY_VECTORS_MS, signal);
        incomplete.add(documentId);
      }
    }
    running = null;
  };
  return {
    complete(documentId: string): void {
      incomplete.add(documentId);
      running ??= run();
    },
    ended: async () => running,
  };
}
