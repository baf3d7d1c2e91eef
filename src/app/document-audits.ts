/** Verifies the records and stored views of documents: one on request, and all listed ones at the start. */
import type { RecordCheck } from '../audit/record-check.js';
import { recordCheck } from '../audit/record-check.js';
import { documentIdOf } from '../documents/events.js';
import type { CorruptDocuments, DocumentCheck, VerifyDocumentDeps } from '../documents/verify.js';
import { verifyDocument } from '../documents/verify.js';
import type { RecordedEvent } from '../eventlog/port.js';
import { retryWhileUnavailable } from '../eventlog/port.js';
import { readUpToDateUntil, readUpToDateWithRetry } from '../projections/read-up-to-date.js';
import { TaskTracker } from '../system/async/tasks.js';
import { listedIds } from './listed-ids.js';
import type { RunAuditsDeps } from './run-audits.js';

export interface DocumentAuditsDeps extends Pick<RunAuditsDeps, 'log' | 'history' | 'projector' | 'system' | 'logger'> {
  readonly corruptDocuments: CorruptDocuments;
}

export class DocumentAudits {
  readonly #deps: DocumentAuditsDeps;
  readonly #tasks = new TaskTracker();
  readonly #check: RecordCheck;

  constructor(deps: DocumentAuditsDeps) {
    this.#deps = deps;
    this.#check = recordCheck({
      verify: (documentId) => this.#verifyInBackground(documentId),
      system: deps.system,
      onFault: (err) => deps.logger.error({ err }, 'documents: the check of their records stopped early'),
    });
  }

  /** Reads and checks a document's whole record and its stored view, or returns null if there is no such document. */
  verify(documentId: string): Promise<DocumentCheck | null> {
    const { logger, history } = this.#deps;
    return this.#verify(documentId, async (seen, record) => {
      logger.error({ documentId }, 'document: its stored view differed from its events; replacing the view');
      await history.replaceDocument(seen, { id: documentId, record });
    });
  }

  /** Verifies a corrupt document again after an event that completes or removes it, once the log can be read. */
  onDocumentChanged({ stream }: RecordedEvent): void {
    const id = documentIdOf(stream);
    if (id !== null && this.#deps.corruptDocuments.has(id)) void this.#tasks.track(this.#verifyAgain(id));
  }

  /** Verifies all listed documents. Resolves after at most 100 ms; the check then continues in the background. */
  check(): Promise<void> {
    const { history } = this.#deps;
    const { signal } = this.#tasks;
    return this.#check.start(
      listedIds(async (page) => {
        const documents = await readUpToDateWithRetry(this.#deps, () => history.documents(page), signal);
        return documents.map(({ id }) => id);
      }),
    );
  }

  /** Ends the check. */
  async stop(): Promise<void> {
    await Promise.all([this.#check.stop(), this.#tasks.end()]);
  }

  async #verifyAgain(documentId: string): Promise<void> {
    const { system, logger } = this.#deps;
    const { signal } = this.#tasks;
    try {
      await retryWhileUnavailable(() => this.#verifyInBackground(documentId), { system, signal });
    } catch (err) {
      if (!this.#tasks.isEnding)
        logger.error({ documentId, err }, 'document: its changed record could not be verified');
    }
  }

  /** Does not replace a view that differs from the record: a verification on request does, and reports it. */
  #verifyInBackground(documentId: string): Promise<DocumentCheck | null> {
    return this.#verify(documentId, async () => undefined);
  }

  #verify(documentId: string, replaceView: VerifyDocumentDeps['replaceView']): Promise<DocumentCheck | null> {
    const { log, history, corruptDocuments, system } = this.#deps;
    return verifyDocument(documentId, {
      log,
      sha256: system.sha256,
      replaceView,
      stored: (id) => readUpToDateUntil(this.#deps, () => history.document(id), this.#tasks.signal),
      onCorrupt: (error) => corruptDocuments.found(error),
      onValid: (id) => corruptDocuments.forget(id),
    });
  }
}
