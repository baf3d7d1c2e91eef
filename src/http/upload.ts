/** Uploads: reads the file of a multipart form to the disk, passes it to a handler, and deletes it. */
import { createWriteStream, type WriteStream } from 'node:fs';
import { mkdir, readFile, rm } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { finished } from 'node:stream/promises';
import { MIMEType } from 'node:util';
import type * as Formidable from 'formidable';
import type { Context } from 'koa';
import type { System } from '../system/system.js';
import { brokenRules, RequestRefused } from '../api/problems.js';
import { fieldOf } from '../system/untrusted.js';
import { assertUnencoded } from './body.js';
import { dispositionOf, type Disposition } from './content-disposition.js';

/** Largest file in bytes. */
const MAX_FILE_BYTES = 50 * 1024 * 1024;
/** Most bytes of a form beside its file: part headers, boundaries and other parts. */
const MAX_OTHER_BYTES = 64 * 1024;
/**
 * How long a form may take to arrive, in milliseconds, because it holds one of few permits. Less than the 300 s after
 * which Node closes the connection. 50 MiB in that time need 1.8 Mbit/s.
 */
const MAX_FORM_MS = 240_000;
/** In each period of this length a byte of an unfinished form must arrive, in milliseconds. */
const PROGRESS_MS = 30_000;
/** Most characters of a file name. */
const MAX_NAME = 255;

export interface Upload {
  /** The sent name after its last `/` or `\`, with spaces in place of control characters. */
  readonly filename: string;
  /** Lower-case hex SHA-256 of the file. */
  readonly id: string;
  readonly bytes: number;
  read(): Promise<Uint8Array>;
}

export interface UploadDeps {
  /** Folder of the temporary file. */
  readonly folder: string;
  /** Name of the temporary file. */
  readonly name: string;
  readonly after: System['after'];
}

/**
 * Reads the form to its end and passes its file to `work`; deletes the file when the work has settled.
 *
 * @throws {RequestRefused} 503 if the file cannot be stored, 408 if the form takes too long or stalls, 413, 422 for a missing
 * part   or an unreadable form, 400 for another file name or a form that is cut off
 */
export async function withUpload<T>(
  ctx: Context,
  { folder, name, after }: UploadDeps,
  work: (upload: Upload) => Promise<T>,
): Promise<T> {
  await mkdir(folder, { recursive: true }).catch((cause: unknown) => {
    throw cannotStore(cause);
  });
  const path = join(folder, name);
  const reading = new FormReading(path);
  try {
    const { filename, id } = await reading.read(ctx, after);
    return await work({ filename, id, bytes: reading.fileBytes, read: () => readFile(path) });
  } finally {
    await reading.clear();
  }
}

/** Checks the headers before the service reads the body. @throws {RequestRefused} 415, 413 */
export function assertForm(ctx: Context): void {
  if (!isForm(ctx.get('Content-Type'))) {
    throw new RequestRefused('Content-Type should be multipart/form-data', { status: 415 });
  }
  assertUnencoded(ctx);
  if (Number(ctx.get('Content-Length')) > MAX_FILE_BYTES + MAX_OTHER_BYTES) throw tooLarge();
}

function isForm(text: string): boolean {
  try {
    return new MIMEType(text).essence === 'multipart/form-data';
  } catch {
    return false;
  }
}

type Form = ReturnType<typeof Formidable.formidable>;
type FormPart = Parameters<Form['onPart']>[0];

/** Reads one form. Formidable parses it; this class decides which part is written, and bounds it. */
class FormReading {
  readonly #path: string;
  readonly #written: WriteStream[] = [];
  /** File names of the parts named `file`. */
  readonly #filenames: string[] = [];
  /** The error of writing the file. */
  #failed: Error | null = null;
  /** Bytes of the whole form. */
  #bytes = 0;
  /** Bytes of the parts named `file`. */
  fileBytes = 0;

  constructor(path: string) {
    this.#path = path;
  }

  async read(ctx: Context, after: System['after']): Promise<Pick<Upload, 'filename' | 'id'>> {
    const req: IncomingMessage = ctx.req;
    // Loaded with the first form, so that the start does not wait for it.
    const formidable = await import('formidable');
    if (req.destroyed) throw cutOff();
    const form = this.#formOf(formidable);
    // Formidable does not bound part headers, skipped parts or time.
    let refuse: (why: RequestRefused) => void = () => undefined;
    const refused = new Promise<never>((_, reject) => (refuse = reject));
    const guard = (chunk: Buffer): void => {
      if (this.#isTooLarge()) refuse(tooLarge());
      this.#bytes += chunk.length;
    };
    const detail = `The form did not arrive within ${MAX_FORM_MS / 1_000} s`;
    const cancel = after(MAX_FORM_MS, () => refuse(new RequestRefused(detail, { status: 408 })));
    const checkLater = (bytesBefore: number): (() => void) =>
      after(PROGRESS_MS, () => {
        if (this.#bytes === bytesBefore && !req.complete) refuse(stalled());
        cancelCheck = checkLater(this.#bytes);
      });
    let cancelCheck = checkLater(0);
    // Formidable listens before data flows, because it awaits nothing that takes a turn of the event loop.
    const parsed = form.parse(req);
    req.on('data', guard);
    try {
      const [, files] = await Promise.race([parsed, refused]);
      if (this.#isTooLarge()) throw tooLarge();
      await this.#assertWritten();
      return this.#fileIn(files);
    } catch (error) {
      // Stops parsing; the request continues, so that the client can read the answer.
      req.removeAllListeners('data');
      throw this.#refusal(ctx, error);
    } finally {
      cancel();
      cancelCheck();
      req.off('data', guard);
    }
  }

  /** Formidable does not report an error of writing the last bytes. */
  async #assertWritten(): Promise<void> {
    try {
      for (const stream of this.#written) await finished(stream);
    } catch (cause) {
      throw cannotStore(cause);
    }
  }

  /** Deletes the file. */
  async clear(): Promise<void> {
    for (const stream of this.#written) {
      if (!stream.closed) await new Promise<void>((resolve) => stream.once('close', () => resolve()).destroy());
    }
    if (this.#written.length > 0) await rm(this.#path, { force: true });
  }

  #formOf(formidable: typeof Formidable): Form {
    const form = formidable.formidable({
      // Its other parsers accept any media type that contains their name, so also a boundary such as `json`.
      enabledPlugins: [formidable.multipart],
      // Bytes as characters, so that a name in two chunks is joined before it is decoded as UTF-8.
      encoding: 'binary',
      hashAlgorithm: 'sha256',
      allowEmptyFiles: true,
      minFileSize: 0,
      maxFileSize: MAX_FILE_BYTES,
      maxTotalFileSize: MAX_FILE_BYTES,
      maxFiles: 1,
      fileWriteStreamHandler: () => {
        const stream = createWriteStream(this.#path, { flags: 'wx' });
        stream.on('error', (error) => (this.#failed ??= error));
        this.#written.push(stream);
        return stream;
      },
    });
    form.onPart = (part) => {
      const { name, filename } = namesOf(part);
      if (name !== 'file') return;
      this.#filenames.push(filename);
      part.on('data', (data: Buffer) => (this.fileBytes += data.length));
      if (this.#filenames.length > 1 || !isPdfName(filename)) return;
      // Formidable parses names by other rules, and treats a part without a media type as text.
      part.name = name;
      part.mimetype ??= 'application/octet-stream';
      form._handlePart(part);
    };
    return form;
  }

  #isTooLarge(): boolean {
    return this.fileBytes > MAX_FILE_BYTES || this.#bytes - this.fileBytes > MAX_OTHER_BYTES;
  }

  #fileIn(files: Formidable.Files): Pick<Upload, 'filename' | 'id'> {
    const [filename, second] = this.#filenames;
    const loc = ['body', 'file'];
    if (filename === undefined) throw brokenRules([{ loc, msg: 'Field required', type: 'missing' }]);
    if (second !== undefined) throw brokenRules([{ loc, msg: 'Part should be sent once', type: 'repeated' }]);
    if (!isPdfName(filename)) {
      const what = filename === '' ? 'the file has no name' : 'its name does not end in .pdf';
      throw new RequestRefused(`Only PDF files are accepted: ${what}`, { status: 400 });
    }
    if ([...filename].length > MAX_NAME) {
      const msg = `File name should have at most ${MAX_NAME} characters`;
      throw brokenRules([{ loc, msg, type: 'string_too_long' }]);
    }
    const [file] = files['file'] ?? [];
    if (typeof file?.hash !== 'string') throw new Error('The file of a form has no hash');
    return { filename, id: file.hash };
  }

  #refusal({ req }: Context, error: unknown): unknown {
    if (error instanceof RequestRefused) return error;
    if (req.destroyed && !req.complete) return cutOff();
    if (this.#isTooLarge()) return tooLarge();
    if (this.#failed !== null) return cannotStore(this.#failed);
    if (!(error instanceof Error && 'httpCode' in error)) return error;
    return brokenRules([{ loc: ['body'], msg: 'Form cannot be read as multipart/form-data', type: 'form_invalid' }]);
  }
}

/** Names of a part and of its file, without folders in the notation of any system. */
function namesOf(part: FormPart): Disposition {
  // The types lack `headers`.
  const header = fieldOf(fieldOf(part, 'headers'), 'content-disposition');
  const { name, filename } = dispositionOf(typeof header === 'string' ? header : '');
  const sent = filename.slice(Math.max(filename.lastIndexOf('/'), filename.lastIndexOf('\\')) + 1);
  return { name, filename: sent.replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ') };
}

function isPdfName(filename: string): boolean {
  return /\.pdf$/i.test(filename);
}

/** The disk is full or no file descriptor is free: a later try may succeed. */
function cannotStore(cause: unknown): RequestRefused {
  return new RequestRefused(
    'The file cannot be stored at the moment',
    { status: 503, headers: { 'Retry-After': '5' } },
    { cause },
  );
}

/** The client has disconnected, which is not a fault to log. */
function cutOff(): RequestRefused {
  return new RequestRefused('The form was cut off', { status: 400 });
}

/** The client sends nothing, so the service does not wait for the rest before it closes the connection. */
function stalled(): RequestRefused {
  const headers = { Connection: 'close' };
  return new RequestRefused(`No part of the form arrived for ${PROGRESS_MS / 1_000} s`, { status: 408, headers });
}

function tooLarge(): RequestRefused {
  return new RequestRefused(`The file is too large: the limit is ${MAX_FILE_BYTES} bytes`, { status: 413 });
}
