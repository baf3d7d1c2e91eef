/** Adds missing vectors to documents, one document after the other, and tries again until all are there. */
import { DocumentCorrupt, DocumentUnknown } from '../documents/errors.js';
import type { DocumentStore } from '../documents/store.js';
import { isPermanent } from '../embeddings/provider.js';
import { ServiceStopping } from '../errors.js';
import { wait } from '../system/async/deadline.js';
import type { System } from '../system/system.js';

/** Wait after a failure to compute or record vectors, in milliseconds. */
const RETRY_VECTORS_MS = 60_000;

export interface VectorCompleterDeps {
  readonly store: Pick<DocumentStore, 'complete'>;
  readonly system: Pick<System, 'after'>;
  readonly onFault: (error: unknown) => void;
}

export class VectorCompleter {
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
