/** Documents: upload, list, search, read, verify and delete them. */
import { outcomeUnknown, parameterIn } from '../route.js';
import type { FoundPassage, UploadResult } from '../../generated/schemas.js';
import { DocumentUnknown } from '../../documents/errors.js';
import { documentStream, isDocumentId } from '../../documents/events.js';
import type { Ingested } from '../../documents/store.js';
import type { ChunkRange, NumberedChunk } from '../../documents/stored-chunks.js';
import type { CitedChunk } from '../../council/tools/pdf-reader.js';
import { readDocumentQuery } from '../../council/tools/pdf-reader.js';
import { bodyOf } from '../body.js';
import { pageOf } from '../query.js';
import { RequestRefused, brokenRules } from '../../api/problems.js';
import { queryOf } from '../query.js';
import { permitInTime, permitsFor, withPermit } from '../concurrency.js';
import type { RouterContext } from '@koa/router';
import type { HttpContext, Route } from '../route.js';
import type { Answer } from '../answer.js';
import type { Upload } from '../upload.js';
import { assertForm, withUpload } from '../upload.js';
import { documentRecord, documentVerification, listedDocument } from '../../api/serializers/documents.js';

/** Uploads read and ingested at a time, each with at most 50 MiB on the disk; others wait unread. */
const UPLOADS_AT_A_TIME = 8;
/** Records verified at a time, each read from its beginning. */
const READINGS_AT_A_TIME = 4;

/** POST /api/councils/upload-pdf and everything at /api/documents. */
export function documentRoutes(http: HttpContext): readonly Route[] {
  // Search comes before the routes with an id, because `search` would match as one.
  const ofOne = [getRoute(http), chunksRoute(http), verifyRoute(http), deleteRoute(http)];
  return [uploadRoute(http), listRoute(http), searchRoute(http), ...ofOne];
}

function uploadRoute(http: HttpContext): Route {
  const permits = permitsFor(UPLOADS_AT_A_TIME);
  return {
    method: 'POST',
    path: '/api/councils/upload-pdf',
    access: 'documents',
    name: 'uploadPdf',
    summary: 'Uploads a PDF for agents with the PDF reader',
    description: 'Uploading the same bytes again adds nothing; the answer says so.',
    tag: 'documents',
    body: { schema: 'upload-form.json', isRequired: true, mediaType: 'multipart/form-data' },
    success: {
      status: 200,
      description: 'The document can be searched',
      schema: 'upload-result.json',
      headers: ['Content-Location'],
    },
    problems: [400, 408],
    async handle(ctx, caller) {
      assertForm(ctx);
      const release = await permitInTime(permits, { http, caller });
      const { system, uploadDir: folder } = http;
      try {
        const deps = { folder, name: system.uuid(), after: system.after };
        return await withUpload(ctx, deps, (upload) => ingest(http, upload, caller.actor));
      } finally {
        release();
      }
    },
  };
}

/** Ingests an upload and waits until it can be searched. */
async function ingest(http: HttpContext, upload: Upload, actor: string | null): Promise<Answer> {
  const { id: documentId, filename } = upload;
  const ingested = await http.documents.ingest({ ...upload, actor });
  const late = new AbortController();
  try {
    await http.withinDeadline(http.documents.waitUntilSearchable(ingested, late.signal), notSearchableYet);
  } finally {
    late.abort();
  }
  const { chunks, isNew } = ingested;
  http.log.info({ documentId, chunks, isNew, actor }, 'document ingested');
  const body: UploadResult = { filename, chunks_ingested: chunks, message: messageOf(filename, ingested) };
  return { status: 200, body, headers: { 'Content-Location': `/api/documents/${documentId}` } };
}

/** The document is recorded but not indexed yet: another upload adds nothing and waits for the index. */
function notSearchableYet(): RequestRefused {
  const headers = { 'Retry-After': '5' };
  return new RequestRefused('The document is stored but not searchable yet: upload it again to wait', {
    status: 503,
    headers,
  });
}

/** The message of an upload, with the number of chunks and the file name. */
function messageOf(filename: string, { chunks, isNew }: Ingested): string {
  const count = `${chunks} ${chunks === 1 ? 'chunk' : 'chunks'}`;
  if (!isNew) return `Nothing was added: the content of ${filename} had been ingested before, ${count}`;
  return chunks === 0 ? `No text was found in ${filename}: ${count} ingested` : `${count} of ${filename} ingested`;
}

function listRoute(http: HttpContext): Route {
  const query = queryOf(http.schemas, 'document-query.json');
  return {
    method: 'GET',
    path: '/api/documents',
    access: 'read',
    name: 'listDocuments',
    summary: 'Lists the documents, newest first',
    tag: 'documents',
    query,
    success: { status: 200, description: 'A page of the documents', schema: 'document-list.json', headers: ['Link'] },
    async handle(ctx) {
      const list = pageOf(ctx, query.read(ctx), (page) => http.documentList(page));
      const { items, headers } = await http.withinDeadline(list);
      return { status: 200, body: items.map(listedDocument), headers };
    },
  };
}

function getRoute(http: HttpContext): Route {
  return {
    method: 'GET',
    path: '/api/documents/{document_id}',
    access: 'read',
    name: 'getDocument',
    summary: 'Returns a document',
    tag: 'documents',
    success: { status: 200, description: 'The document', schema: 'document.json' },
    async handle(ctx) {
      const documentId = documentIdIn(ctx);
      const found = await http.withinDeadline(http.documents.find(documentId));
      if (found === null) throw new DocumentUnknown({ documentId });
      return { status: 200, body: documentRecord(found) };
    },
  };
}

function chunksRoute(http: HttpContext): Route {
  const query = queryOf(http.schemas, 'document-chunks-query.json');
  const permits = permitsFor(READINGS_AT_A_TIME);
  return {
    method: 'GET',
    path: '/api/documents/{document_id}/chunks',
    access: 'read',
    name: 'listDocumentChunks',
    summary: 'Lists the chunks of a document, or of one of its pages, in order',
    tag: 'documents',
    query,
    success: {
      status: 200,
      description: 'A page of the chunks',
      schema: 'document-chunk-list.json',
      headers: ['Link'],
    },
    async handle(ctx, caller) {
      const range = query.read(ctx);
      const documentId = documentIdIn(ctx);
      const list = async (part: ChunkRange): Promise<readonly NumberedChunk[]> => {
        const found = await withPermit(permits, { http, caller }, () => http.documents.chunks(documentId, part));
        if (found === null) throw new DocumentUnknown({ documentId });
        return found;
      };
      const { items, headers } = await pageOf(ctx, range, list);
      return { status: 200, body: items, headers };
    },
  };
}

/** Searches at a time; others wait. */
const SEARCHES_AT_A_TIME = 8;

function searchRoute(http: HttpContext): Route {
  const query = queryOf(http.schemas, 'document-search-query.json');
  const permits = permitsFor(SEARCHES_AT_A_TIME);
  return {
    method: 'GET',
    path: '/api/documents/search',
    access: 'read',
    name: 'searchDocuments',
    summary: 'Finds the chunks that an agent with the PDF reader would get',
    tag: 'documents',
    query,
    success: { status: 200, description: 'The nearest chunks, best first', schema: 'document-search.json' },
    async handle(ctx, caller) {
      const { q, top_k: topK } = query.read(ctx);
      const text = readDocumentQuery(q);
      if (text === null) throw brokenRules([{ loc: ['query', 'q'], msg: NO_WORDS, type: 'string_too_short' }]);
      const late = new AbortController();
      try {
        const find = () => http.documents.search({ query: text, topK }, { signal: late.signal });
        return { status: 200, body: (await withPermit(permits, { http, caller }, find)).map(foundPassage) };
      } finally {
        late.abort();
      }
    },
  };
}

const NO_WORDS = 'Input should contain more than white space';

function foundPassage({ document, filename, page, chunk, text, score, cite }: CitedChunk): FoundPassage {
  return { document, filename: filename ?? null, page, chunk, text, score, cite };
}

function verifyRoute(http: HttpContext): Route {
  const permits = permitsFor(READINGS_AT_A_TIME);
  return {
    method: 'GET',
    path: '/api/documents/{document_id}/verify',
    access: 'read',
    name: 'verifyDocument',
    summary: 'Verifies the record of a document and reports its first difference',
    tag: 'audit',
    success: { status: 200, description: 'The result', schema: 'document-verification.json' },
    async handle(ctx, caller) {
      const documentId = documentIdIn(ctx);
      const audit = await withPermit(permits, { http, caller }, () => http.documents.verify(documentId));
      if (audit === null) throw new DocumentUnknown({ documentId });
      return { status: 200, body: documentVerification(documentId, audit) };
    },
  };
}

function deleteRoute(http: HttpContext): Route {
  const body = bodyOf(http, 'erase-request.json', { isRequired: false });
  return {
    method: 'DELETE',
    path: '/api/documents/{document_id}',
    access: 'documents',
    name: 'deleteDocument',
    summary: 'Erases a document: agents no longer find it; runs keep the chunks they have read',
    description:
      'The ledger gets a leaf with the time, the key and the reason, then the texts of the document leave the log, the lists and the search.',
    tag: 'documents',
    body,
    success: { status: 204, description: 'The document is erased', schema: null },
    async handle(ctx, { actor }) {
      const { reason = null } = await body.read(ctx);
      const documentId = documentIdIn(ctx);
      const erasing = http.eraseDocument(documentId, { actor, reason });
      await http.withinDeadline(erasing, outcomeUnknown(documentStream(documentId)));
      http.log.info({ documentId, actor }, 'document erased');
      return { status: 204, body: null };
    },
  };
}

/** @throws {DocumentUnknown} for any text that is no document's id */
function documentIdIn(ctx: RouterContext): string {
  const documentId = parameterIn(ctx, 'document_id');
  if (!isDocumentId(documentId)) throw new DocumentUnknown({ documentId });
  return documentId;
}
