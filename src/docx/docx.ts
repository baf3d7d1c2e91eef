/** Converts drafts from Markdown to files for Word. */
import { Worker } from 'node:worker_threads';
import type { DraftSource } from '../generated/schemas.js';

export interface DocxOptions {
  /** Title in the properties of the file. */
  readonly title: string;
  /** The pages that the draft cites, in its order. The marks of others, and of pages without a document, stay. */
  readonly sources: readonly DraftSource[];
}

/** The task of the thread. */
export interface DocxTask extends DocxOptions {
  readonly markdown: string;
}

/**
 * The bytes of a .docx file with a draft. A thread makes it, because a draft of the largest size takes up to two seconds
 * of processor time; the thread loads the packages that this needs.
 *
 * @throws the error of the thread
 */
export function docxOf(markdown: string, options: DocxOptions): Promise<Buffer> {
  const task: DocxTask = { markdown, ...options };
  const thread = new Worker(new URL('./worker.js', import.meta.url), { workerData: task });
  return new Promise((resolve, reject) => {
    thread.on('message', (bytes: Uint8Array) => resolve(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)));
    thread.on('error', reject);
    thread.on('exit', () => reject(new Error('The thread that makes .docx files has ended early')));
  });
}
