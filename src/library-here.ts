/** The documents of this instance: taken in, listed, searched. */
import { join } from 'node:path';
import { ServiceStopping } from './errors.js';
import { DocumentDamaged, DocumentUnknown } from './library/document-errors.js';
import { pdfExtractor } from './library/extract.js';
import { indexedPassages } from './library/indexed-passages.js';
import type { DocumentRecord } from './library/document-record.js';
import { OFFLINE_EMBEDDING_MODEL } from './library/offline-embeddings.js';
import { PassageFeed } from './library/passage-feed.js';
import type { PassageSearch } from './library/passages.js';
import { openPassagesIndex } from './library/passages-index.js';
import { embeddingsOf } from './library/provider.js';
import type { Ingested, UploadedFile } from './library/shelf.js';
import { DocumentShelf } from './library/shelf.js';
import type { EventLog, Position, RecordedEvent } from './log/port.js';
import type { History } from './projections/history.js';
import type { Projector } from './projections/projector.js';
import type { EngineConfig, Surroundings } from './surroundings.js';
import { isLasting, toldOnce } from './library/told-once.js';
import { wait } from './wait.js';

/** How long an append to a document is tried, in milliseconds, before its upload is answered 503. */
const APPEND_DEADLINE_MS = 10_000;
/** Wait before vectors that could not be had or recorded are asked for again, in milliseconds. */
const RETRY_VECTORS_MS = 60_000;

/** What the edges ask of the documents. */
export interface Documents {
  find(documentId: string): Promise<DocumentRecord | null>;
  /** Resolves once it is recorded. */
  ingest(file: UploadedFile): Promise<Ingested>;
  /** Resolves once it can be found here; rejects when the signal is aborted before. */
  reached(ingested: Ingested, signal: AbortSignal): Promise<void>;
  /** Resolves once it cannot be found here any more. */
  remove(documentId: string): Promise<void>;
}

export interface LibraryHere extends Documents {
  readonly passages: PassageSearch;
  /** Whether what was recorded before the start can be found, or could. */
  hasCaughtUp(): boolean;
  /** To be told of each event of a document. */
  recorded(event: RecordedEvent): void;
  /** Starts feeding the index, told of events by this projector from the history's checkpoint on. */
  start(projector: Pick<Projector, 'reached'>): Promise<void>;
  /** Says that it was told of all that had been recorded before the start: from then on its passages can be searched. */
  told(): void;
  /** @param position up to which the projector has come */
  stop(position: Position | null): Promise<void>;
}

export interface LibraryParts {
  readonly log: EventLog;
  readonly standing: { readonly identity: string };
  readonly history: History;
  readonly instanceId: string;
}

/** @throws {ConfigInvalid} for embeddings that cannot be used */
export async function libraryHere(
  config: Pick<EngineConfig, 'embeddings'>,
  { dataDir, ambient, logger }: Pick<Surroundings, 'dataDir' | 'ambient' | 'logger'>,
  { log, standing, history, instanceId }: LibraryParts,
): Promise<LibraryHere> {
  const embeddings = toldOnce(await embeddingsOf(config.embeddings, ambient), (err) =>
    logger.error({ err }, 'documents: no vectors can be made'),
  );
  const { model, dimensions } = embeddings;
  const recordsVectors = model !== OFFLINE_EMBEDDING_MODEL;
  const extractor = pdfExtractor({ ambient, pid: process.pid });
  const appendDeadlineMs = APPEND_DEADLINE_MS;
  const shelf = new DocumentShelf({
    ...{ log, ambient, instanceId, extractor, embeddings, recordsVectors, appendDeadlineMs },
  });
  const onFault = (error: unknown): void => logger.error({ err: error }, 'documents: fault');
  const stopping = new AbortController();
  const completing = completer(shelf, { ambient, onFault, signal: stopping.signal });
  const feed = new PassageFeed({
    ...{ log, ambient, onFault, onIncomplete: completing.complete },
    model: recordsVectors ? model : null,
    async open() {
      // An index that fails is opened again after the start: what it holds may lie past the head of then.
      const at = { identity: standing.identity, head: await log.head() };
      return await openPassagesIndex({ file: join(dataDir.viewsDir, 'passages.sqlite'), log: at, model, dimensions });
    },
  });
  const filenameOf = async (id: string): Promise<string | null> => (await history.document(id))?.filename ?? null;
  let projector: Pick<Projector, 'reached'> | null = null;
  const reached = async (position: Position, signal?: AbortSignal): Promise<void> => {
    await projector?.reached(position);
    await feed.reached(position, signal);
  };
  return {
    hasCaughtUp: () => feed.hasCaughtUp,
    recorded: (event) => feed.take(event),
    passages: indexedPassages({ feed, embeddings, recordsVectors, filenameOf }),
    async start(by) {
      projector = by;
      const [first] = await history.documents({ limit: 1, offset: 0 });
      feed.start(history.checkpoint, { hasDocuments: first !== undefined });
    },
    told: () => feed.told(),
    find: (documentId) => shelf.find(documentId),
    ingest: (file) => shelf.ingest(file),
    reached: ({ position }, signal) => reached(position, signal),
    remove: async (documentId) => reached(await shelf.remove(documentId)),
    async stop(position) {
      stopping.abort();
      await Promise.all([shelf.stop(), completing.ended()]);
      await feed.stop(position);
    },
  };
}

/** Has missing vectors made, one document after the other, again and again until they are there. */
function completer(
  shelf: DocumentShelf,
  {
    ambient,
    onFault,
    signal,
  }: { ambient: Surroundings['ambient']; onFault: (error: unknown) => void; signal: AbortSignal },
) {
  const incomplete = new Set<string>();
  let running: Promise<void> | null = null;

  const run = async (): Promise<void> => {
    for (const documentId of incomplete) {
      incomplete.delete(documentId);
      try {
        await shelf.complete(documentId);
      } catch (error) {
        if (signal.aborted || error instanceof ServiceStopping) return;
        if (!isLasting(error)) onFault(error);
        // What lies in the document is the same the next time; everything else passes.
        if (error instanceof DocumentUnknown || error instanceof DocumentDamaged) continue;
        await wait(ambient, RETRY_VECTORS_MS, signal);
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
