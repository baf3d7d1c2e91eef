/** Uploads files to the service, in valid and in invalid forms. */
import { createHash } from 'node:crypto';
import type { UploadResult } from '../../src/generated/schemas.js';
import { linesAt, pdfOf } from './pdf-writer.js';
import type { Reply } from './rest-client.js';
import { restClient } from './rest-client.js';

export const UPLOAD = '/api/councils/upload-pdf';

/** Sends a file as the part `file`. */
export async function upload(url: string, bytes: Uint8Array, filename = 'trees.pdf'): Promise<Reply> {
  const form = new FormData();
  form.append('file', new Blob([new Uint8Array(bytes)], { type: 'application/pdf' }), filename);
  return await sendForm(url, form);
}

export async function sendForm(url: string, form: FormData): Promise<Reply> {
  const reply = await fetch(url + UPLOAD, { method: 'POST', body: form });
  return { status: reply.status, headers: reply.headers, text: await reply.text() };
}

/** Sends a file that the service must accept. */
export async function uploaded(url: string, bytes: Uint8Array, filename?: string): Promise<UploadResult> {
  return restClient(url).read(await upload(url, bytes, filename), 200, 'upload-result.json');
}

/** Id of a document: hash of the file's bytes. */
export function idOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/** A PDF with these lines on its pages. */
export function pdfWith(...pages: readonly (readonly string[])[]): Buffer {
  return pdfOf(pages.map((lines) => linesAt(lines, { x: 50, y: 60 })));
}

/** Another file with the same text: adds a comment after the end of the PDF. */
export function copyOf(pdf: Buffer, comment: string): Buffer {
  return Buffer.concat([pdf, Buffer.from(`% ${comment}\n`)]);
}

/** One part of a form as bytes, with these headers unchanged. */
export function partOf(heads: readonly string[], content: string | Uint8Array): Buffer {
  return Buffer.concat([Buffer.from([...heads, '', ''].join('\r\n')), Buffer.from(content), Buffer.from('\r\n')]);
}

export const BOUNDARY = 'a-boundary';

/** The body of a form of these parts. */
export function formOf(...parts: readonly Uint8Array[]): Buffer {
  const begin = Buffer.from(`--${BOUNDARY}\r\n`);
  return Buffer.concat([...parts.flatMap((part) => [begin, part]), Buffer.from(`--${BOUNDARY}--\r\n`)]);
}

/** Head of the part `file`. */
export function fileHead(filename: string | null): string {
  return `Content-Disposition: form-data; name="file"${filename === null ? '' : `; filename="${filename}"`}`;
}
