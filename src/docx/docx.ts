/** Converts drafts from Markdown to files for Word. */
import { Worker } from 'node:worker_threads';
import type { DraftSource } from '../generated/schemas.js';
import type { System } from '../system/system.js';
import { DocxTimedOut } from './errors.js';

export interface DocxOptions {
  /** Title in the properties of the file. */
  readonly title: string;
  /** The pages that the draft cites, in its order. The marks of others, and of pages without a document, stay. */
  readonly sources: readonly DraftSource[];
  /** The final output of the run as JSON, which stands at the end. Default: none. */
  readonly output?: string;
  /** What made the draft: custom properties of the file, and a last line for its readers, or null for none. */
  readonly mark: {
    readonly properties: readonly (readonly [name: string, value: string])[];
    readonly line: string | null;
  };
}

/** How long a thread may take, in milliseconds: thirty times what the largest draft needs, because a machine may be busy. */
const MAX_MS = 60_000;

/** The task of the thread. */
export interface DocxTask extends DocxOptions {
  readonly markdown: string;
}

/**
 * The bytes of a .docx file with a draft. A thread makes it, because a draft of the largest size takes up to two seconds
 * of processor time; the thread loads the packages that this needs. It is ended after `MAX_MS`.
 *
 * @throws {DocxTimedOut} @throws the error of the thread
 */
export function docxOf(markdown: string, options: DocxOptions, { after }: Pick<System, 'after'>): Promise<Buffer> {
  const task: DocxTask = { markdown, ...options };
  const thread = new Worker(new URL('./worker.js', import.meta.url), { workerData: task });
  return new Promise((resolve, reject) => {
    const cancel = after(MAX_MS, () => {
      reject(new DocxTimedOut({ maxMs: MAX_MS }));
      void thread.terminate();
    });
    thread.on('message', (bytes: Uint8Array) => resolve(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)));
    thread.on('error', reject);
    thread.on('exit', () => {
      cancel();
      reject(new Error('The thread that makes .docx files has ended early'));
    });
  });
}
