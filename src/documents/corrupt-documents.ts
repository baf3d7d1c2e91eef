/**
 * The documents whose record is corrupt: they are excluded from search and not shown by id. Not stored, because every
 * start verifies all documents. One small entry per corrupt document.
 */
import { DocumentCorrupt } from './errors.js';

export class CorruptDocuments {
  readonly #onFound: (error: DocumentCorrupt) => void;
  readonly #found = new Map<string, DocumentCorrupt>();

  /** @param onFound called once per document, when it is found corrupt */
  constructor(onFound: (error: DocumentCorrupt) => void) {
    this.#onFound = onFound;
  }

  has(documentId: string): boolean {
    return this.#found.has(documentId);
  }

  /** Marks a document as corrupt. */
  found(error: DocumentCorrupt): void {
    const { documentId } = error.data;
    if (this.#found.has(documentId)) return;
    this.#found.set(documentId, error);
    this.#onFound(error);
  }

  /** Runs work on documents and marks the one that it finds corrupt. */
  async noting<T>(work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (error) {
      if (error instanceof DocumentCorrupt) this.found(error);
      throw error;
    }
  }

  /** Unmarks a document that is valid again: it was deleted, or ingested anew. */
  forget(documentId: string): void {
    this.#found.delete(documentId);
  }

  /** @throws {DocumentCorrupt} for a document that was found corrupt */
  assertNotCorrupt(documentId: string): void {
    const error = this.#found.get(documentId);
    if (error !== undefined) throw error;
  }
}
