/**
 * The documents: one stream each on the log, named by the hash of the file, so that equal bytes are one document. An
 * upload continues from the recorded events, at their exact revision, and repeats no recorded work.
 */
import { ModelFailed, ServiceStopping } from '../errors.js';
import type { AggregateChange, AppendDeps, Changed } from '../eventsourcing/aggregate.js';
import { changeAggregate } from '../eventsourcing/aggregate.js';
import type { Position } from '../eventlog/port.js';
import type { System } from '../system/system.js';
import { KeyedSequencer, TaskTracker } from '../system/async/tasks.js';
import { chunkedPages } from './chunk.js';
import { DocumentContended, DocumentUnknown } from './errors.js';
import type { DocumentFact } from './events.js';
import type { DocumentRecord } from './events.js';
import { documentRecordOf, documentStatusOf, documentStream, readDocument } from './events.js';
import type { DocumentSource, DocumentState } from './state.js';
import { evolveDocument, nextStep } from './state.js';
import type { ChunkRange, NumberedChunk } from './stored-chunks.js';
import { storedChunks } from './stored-chunks.js';
import type { Embeddings } from '../embeddings/port.js';
import type { PdfExtractor } from '../pdf/extract.js';
import { vectorToBase64 } from '../embeddings/port.js';

/**
 * Number of conflicts with other instances before an append fails. At each conflict the other instance made progress.
 */
const MAX_CONFLICTS = 200;

export interface DocumentStoreOptions extends AppendDeps {
  readonly system: System;
  /** Time limit of the retries of an append, in milliseconds. */
  readonly appendDeadlineMs: number;
  readonly extractor: PdfExtractor;
  readonly embeddings: Embeddings;
  /** Whether vectors are recorded. Otherwise each instance computes them. */
  readonly recordsVectors: boolean;
}

/** A file that was uploaded. */
export interface UploadedFile {
  /** Lower-case hex SHA-256 of its bytes. */
  readonly id: string;
  readonly filename: string;
  /** Size of the file. */
  readonly bytes: number;
  /** Name of the key that uploads it. Default: null, the service has no keys. */
  readonly actor?: string | null;
  /** Reads the bytes. Called at most once. */
  read(): Promise<Uint8Array>;
}

export interface Ingested {
  readonly chunks: number;
  /** Whether this upload ingested it. */
  readonly isNew: boolean;
  /** Position of the event that ingested it. */
  readonly position: Position;
}

export class DocumentStore {
  readonly #options: DocumentStoreOptions;
  /** Ingestions by document. */
  readonly #uploads = new KeyedSequencer();
  readonly #tasks = new TaskTracker();
  readonly #stopping = new AbortController();

  constructor(options: DocumentStoreOptions) {
    this.#options = options;
  }

  /** The document on the log, or null if it is unknown, deleted or not ingested yet. @throws {DocumentCorrupt} */
  async find(documentId: string): Promise<DocumentRecord | null> {
    const { decisive } = await documentStatusOf(this.#options.log, documentId);
    return decisive === null ? null : documentRecordOf(decisive);
  }

  /** The chunks of a document in order, or null as above. @throws {DocumentCorrupt} */
  chunks(documentId: string, range: ChunkRange): Promise<readonly NumberedChunk[] | null> {
    return storedChunks(this.#options, documentId, range);
  }

  /**
   * Ingests a file, or the rest of it that is missing. A concurrent upload of equal bytes waits for it.
   *
   * @throws {PdfRefused | ExtractionTimedOut | ExtractionBusy} its text cannot be extracted
   * @throws {ModelFailed} its vectors cannot be computed
   * @throws {LogUnavailable | AppendOutcomeUnknown} the log does not answer
   * @throws {DocumentContended | DocumentCorrupt | ServiceStopping}
   */
  ingest(file: UploadedFile): Promise<Ingested> {
    return this.#inTurn(file.id, async () => {
      const state = await this.#fold(file.id, null);
      const source = isIngested(state) ? state : await this.#sourceOf(file);
      return await this.#untilIngested(file.id, state, source);
    });
  }

  /** Adds the vectors of this model that an ingested document lacks. Throws as `ingest`. */
  complete(documentId: string): Promise<void> {
    return this.#inTurn(documentId, async () => {
      const state = await this.#fold(documentId, null);
      if (isIngested(state)) await this.#untilIngested(documentId, state, null);
    });
  }

  /** Ends waits and model calls; resolves once all work has ended. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.all([this.#tasks.end(), this.#options.extractor.stop()]);
  }

  /** Runs work one after the other per document. A failure of the model fails the waiting work too, without retries. */
  #inTurn<T>(documentId: string, work: () => Promise<T>): Promise<T> {
    const turn = this.#uploads.run(documentId, (previousError) => {
      if (this.#tasks.isEnding) throw new ServiceStopping();
      if (previousError instanceof ModelFailed) throw previousError;
      return work();
    });
    return this.#tasks.track(turn);
  }

  async #sourceOf({ filename, bytes, actor = null, read }: UploadedFile): Promise<DocumentSource> {
    const { extractor, system } = this.#options;
    const { pages } = await extractor.extract(read);
    return { filename, bytes, pages: pages.length, actor, chunks: await chunkedPages(pages, system) };
  }

  /**
   * Records what is missing, step by step. Where another instance was first, goes on from its events.
   *
   * @param source the file, or null to use the recorded contents unless the document is deleted
   */
  async #untilIngested(
    documentId: string,
    first: DocumentState | null,
    source: DocumentSource | null,
  ): Promise<Ingested> {
    const { log, recordsVectors, embeddings } = this.#options;
    let state = first;
    let isNew = false;
    for (;;) {
      const { before, recorded } = await this.#change(documentId, {
        read: async (conflict) => (conflict === null ? state : (state = await this.#fold(documentId, state))),
        headOf: (last) => last?.head ?? null,
        decide: async (last) => {
          if (this.#tasks.isEnding) throw new ServiceStopping();
          const wanted = source ?? (isIngested(last) ? last : null);
          if (wanted === null) throw new DocumentUnknown({ documentId });
          const step = nextStep(last, wanted, recordsVectors ? embeddings.model : null);
          switch (step.kind) {
            case 'embed':
              return [await this.#embedded(step)];
            case 'append':
              return step.facts;
            case 'done':
              return [];
            default:
              return step satisfies never;
          }
        },
      });
      state = recorded.reduce(evolveDocument, before);
      if (recorded.length === 0) break;
      isNew ||= isIngested(state) && !isIngested(before);
    }
    const { decisive } = await documentStatusOf(log, documentId);
    // It was deleted concurrently.
    if (decisive === null) throw new DocumentUnknown({ documentId });
    return { chunks: state?.chunks.length ?? 0, isNew, position: decisive.position };
  }

  /** @throws {LogUnavailable | AppendOutcomeUnknown} the log does not answer in time */
  #change<S>(
    documentId: string,
    change: Pick<AggregateChange<S, DocumentFact>, 'read' | 'headOf' | 'decide'>,
  ): Promise<Changed<S, DocumentFact>> {
    const error = (cause: Error): Error => new DocumentContended({ documentId }, { cause });
    const limits = { limit: { conflicts: MAX_CONFLICTS, error }, maxAppendMs: this.#options.appendDeadlineMs };
    const { signal } = this.#tasks;
    const stream = documentStream(documentId);
    return changeAggregate(this.#options, { stream, subject: documentId, ...change, ...limits }, signal);
  }

  /** Continues a fold to the head; from null, starts at the first event in force. @throws {DocumentCorrupt} */
  async #fold(documentId: string, folded: DocumentState | null): Promise<DocumentState | null> {
    const { log, system } = this.#options;
    const from = folded === null ? (await documentStatusOf(log, documentId)).since : folded.head.seq + 1;
    let state = folded;
    for await (const event of readDocument(log, documentId, { sha256: system.sha256, from })) {
      state = evolveDocument(state, event);
    }
    return state;
  }

  async #embedded({
    from,
    texts,
  }: {
    readonly from: number;
    readonly texts: readonly string[];
  }): Promise<DocumentFact> {
    const { model, dimensions, embed } = this.#options.embeddings;
    const { signal } = this.#stopping;
    const vectors = await embed(texts, { kind: 'chunk', signal }).catch((error: unknown) => {
      throw signal.aborted ? new ServiceStopping() : error;
    });
    return { type: 'ChunksEmbedded', data: { model, dimensions, from, vectors: vectors.map(vectorToBase64) } };
  }
}

function isIngested(state: DocumentState | null): state is DocumentState {
  return state?.status === 'ingested';
}
