/** PDF files that agents can search. */
import type { Document, FoundPassage, NumberedChunk, UploadResult } from '../generated/schemas.js';
import type { Api, CallOptions } from './http.js';
import type { OnSent } from './host-fetch.js';
import { pathOf } from './http.js';
import type { Pages } from './pages.js';
import { pagesOf } from './pages.js';

/** Time limit of an upload, in milliseconds. */
const UPLOAD_MS = 600_000;

export interface UploadOptions extends CallOptions {
  /** Must end in `.pdf`. Default: the name of the file. */
  readonly filename?: string | undefined;
  /** Called with the number of bytes sent; only in browsers, and without the option `fetch`. */
  readonly onProgress?: OnSent | undefined;
}

export interface ChunkOptions extends CallOptions {
  /** Page of the document, from 1. Default: all pages. */
  readonly page?: number | undefined;
  /** Chunks per page of the list. Default: that of the service. */
  readonly limit?: number | undefined;
}

export interface SearchOptions extends CallOptions {
  /** Largest number of chunks, 1 to 20. Default: 5. */
  readonly topK?: number | undefined;
}

export class Documents {
  readonly #api: Api;

  constructor(api: Api) {
    this.#api = api;
  }

  /**
   * Uploads a PDF, so that agents find it. Equal bytes are one document.
   *
   * @throws {InvalidError | TooLargeError} the file cannot be used; `detail` says why
   */
  upload(pdf: Blob, { filename, signal, onProgress }: UploadOptions = {}): Promise<UploadResult> {
    const form = new FormData();
    form.set('file', pdf, filename ?? (pdf instanceof File ? pdf.name : 'document.pdf'));
    const path = pathOf('councils', 'upload-pdf');
    return this.#api.json({
      method: 'POST',
      path,
      body: form,
      signal,
      onSent: onProgress,
      patienceMs: UPLOAD_MS,
      isRepeatable: true,
    });
  }

  /** All documents, the newest first. */
  list({ signal }: CallOptions = {}): Pages<Document> {
    return pagesOf(this.#api, { path: pathOf('documents'), signal });
  }

  /** @throws {NotFoundError} */
  get(id: string, { signal }: CallOptions = {}): Promise<Document> {
    return this.#api.json({ path: pathOf('documents', id), signal });
  }

  /** The chunks of a document in order. @throws {NotFoundError} */
  chunks(id: string, { page, limit, signal }: ChunkOptions = {}): Pages<NumberedChunk> {
    return pagesOf(this.#api, { path: pathOf('documents', id, 'chunks'), query: { page, limit }, signal });
  }

  /** The chunks that an agent with the PDF reader gets for these words, the best first. */
  search(q: string, { topK, signal }: SearchOptions = {}): Promise<readonly FoundPassage[]> {
    return this.#api.json({ path: pathOf('documents', 'search'), query: { q, top_k: topK }, signal });
  }

  /** Erases a document. The reason stays in the ledger for ever. @throws {NotFoundError} */
  async delete(id: string, { reason, signal }: CallOptions & { readonly reason?: string } = {}): Promise<void> {
    const body = reason === undefined ? {} : { body: { reason } };
    await this.#api.json({ method: 'DELETE', path: pathOf('documents', id), signal, ...body });
  }
}
