/** PDF files that agents can search. */
import type { Document, FoundPassage, NumberedChunk, UploadResult } from '../generated/schemas.js';
import type { Api, CallOptions } from './http.js';
import type { OnSent } from './host-fetch.js';
import { pathOf } from './http.js';
import type { Pages } from './pages.js';
import { pagesOf } from './pages.js';

/** How long the service may take to read an upload, in milliseconds. */
const UPLOAD_MS = 600_000;

export interface UploadOptions extends CallOptions {
  /** Default: the file's own name. */
  readonly filename?: string | undefined;
  /**
   * Called with how much is sent; never where the host cannot tell, as in Node or with a `fetch` given as an option.
   */
  readonly onProgress?: OnSent | undefined;
}

export interface ChunkOptions extends CallOptions {
  /** The page whose passages are wanted, from 1. Default: all pages. */
  readonly page?: number | undefined;
  /** Passages a page of the list. Default: the service's. */
  readonly limit?: number | undefined;
}

export interface SearchOptions extends CallOptions {
  /** Most passages, 1 to 20. Default: 5. */
  readonly topK?: number | undefined;
}

export class Documents {
  readonly #api: Api;

  constructor(api: Api) {
    this.#api = api;
  }

  /** Ingests a PDF; the same bytes twice are one document. Its name must end in `.pdf`. */
  upload(pdf: Blob, { filename, signal, onProgress }: UploadOptions = {}): Promise<UploadResult> {
    const form = new FormData();
    form.set('file', pdf, filename ?? (pdf instanceof File ? pdf.name : 'document.pdf'));
    const path = pathOf('councils', 'upload-pdf');
    return this.#api.json({
      ...{ method: 'POST', path, body: form, signal, onSent: onProgress },
      ...{ patienceMs: UPLOAD_MS, isRepeatable: true },
    });
  }

  /** All of them, newest first. */
  list({ signal }: CallOptions = {}): Pages<Document> {
    return pagesOf(this.#api, { path: pathOf('documents'), signal });
  }

  /** @throws {NotFoundError} */
  get(id: string, { signal }: CallOptions = {}): Promise<Document> {
    return this.#api.json({ path: pathOf('documents', id), signal });
  }

  /** Its passages, in order. @throws {NotFoundError} */
  chunks(id: string, { page, limit, signal }: ChunkOptions = {}): Pages<NumberedChunk> {
    return pagesOf(this.#api, { path: pathOf('documents', id, 'chunks'), query: { page, limit }, signal });
  }

  /** What an agent with the PDF reader would be given for these words, best first. */
  search(q: string, { topK, signal }: SearchOptions = {}): Promise<readonly FoundPassage[]> {
    return this.#api.json({ path: pathOf('documents', 'search'), query: { q, top_k: topK }, signal });
  }

  /** @throws {NotFoundError} */
  async delete(id: string, { signal }: CallOptions = {}): Promise<void> {
    await this.#api.json({ method: 'DELETE', path: pathOf('documents', id), signal });
  }
}
