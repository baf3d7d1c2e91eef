/**
 * The documents whose record was found not to bear out: none of them is found by agents or shown as true. Not stored:
 * every start looks for them. One small entry a damaged document.
 */
import { DocumentCorrupt } from './errors.js';

export class CorruptDocuments {
  readonly #onFound: (error: DocumentCorrupt) => void;
  readonly #found = new Map<string, DocumentCorrupt>();

  /** @param onFound told of each once, when it is found */
  constructor(onFound: (error: DocumentCorrupt) => void) {
    this.#onFound = onFound;
  }

  has(documentId: string): boolean {
    return this.#found.has(documentId);
  }

  /** Takes note of a document. */
  found(error: DocumentCorrupt): void {
    const { documentId } = error.data;
    if (this.#found.has(documentId)) return;
    this.#found.set(documentId, error);
    this.#onFound(error);
  }

  /** Takes note of the damage that work on documents fails with. */
  async noting<T>(work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (error) {
      if (error instanceof DocumentCorrupt) this.found(error);
      throw error;
    }
  }

  /** What counts of it bears out again: it was deleted, or taken in anew. */
  forget(documentId: string): void {
    this.#found.delete(documentId);
  }

  /** @throws {DocumentCorrupt} for a document that was found damaged */
  assertNotCorrupt(documentId: string): void {
    const error = this.#found.get(documentId);
    if (error !== undefined) throw error;
  }
}
