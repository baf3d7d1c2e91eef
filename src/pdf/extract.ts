/** Extracts the text of PDFs page by page. Files and parsers are untrusted, so each file has its own child process. */
import type { System } from '../system/system.js';
import { ServiceStopping } from '../errors.js';
import { semaphore, TaskTracker } from '../system/async/tasks.js';
import { ExtractionBusy, ExtractionTimedOut, PdfRefused } from './errors.js';
import type { ChildEnd, ChildOptions, Parser } from './child-protocol.js';
import { messageReader } from './child-protocol.js';
import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';

export interface PdfExtractor {
  /**
   * The text of every page. The pages of a PDF without text are empty.
   *
   * @param read returns the bytes of the file. Called when a child is free, so that waiting files are not in memory
   * @throws {PdfRefused} the file is not a PDF, is unreadable, needs a password, or exceeds a limit
   * @throws {ExtractionTimedOut | ExtractionBusy}
   * @throws {ServiceStopping} after `stop()`; also what `read` throws
   */
  extract(read: () => Promise<Uint8Array>): Promise<PdfText>;
  /** Refuses new and waiting files and kills the children. Resolves when all have ended. May be called twice. */
  stop(): Promise<void>;
}

/** Its only state is its queue. It writes nothing to disk. */
export function pdfExtractor({
  system,
  pid,
  limits = EXTRACT_LIMITS,
}: {
  system: Pick<System, 'after'>;
  /** Id of this process. The children end when it ends. */
  pid: number;
  limits?: ExtractLimits;
}): PdfExtractor {
  const stopping = new AbortController();
  const tasks = new TaskTracker();
  const children = semaphore(limits.maxChildren, {
    maxWaiting: limits.maxWaiting,
    full: () => new ExtractionBusy({ limit: limits.maxWaiting }),
  });

  const extract = async (read: () => Promise<Uint8Array>): Promise<PdfText> => {
    if (stopping.signal.aborted) throw new ServiceStopping();
    const release = await children.acquire();
    try {
      const bytes = await read();
      if (bytes.length > limits.maxBytes) throw new PdfRefused({ reason: 'too-large', limit: limits.maxBytes });
      if (!isPdf(bytes)) throw new PdfRefused({ reason: 'not-a-pdf' });
      return await textWithFallback(bytes, { system, limits, pid, signal: stopping.signal });
    } finally {
      release();
    }
  };

  return {
    extract: (read) => tasks.track(extract(read)),
    async stop() {
      stopping.abort();
      await tasks.end();
    },
  };
}

export interface ExtractLimits {
  /** Bytes of the file. */
  readonly maxBytes: number;
  readonly maxPages: number;
  /** UTF-16 code units of all pages. */
  readonly maxTextUnits: number;
  /** Processor time of each child in milliseconds. The limit of elapsed time is `CLOCK_FACTOR` times as long. */
  readonly timeoutMs: number;
  /** Resident memory of a child in megabytes, which the child checks. */
  readonly maxMemoryMb: number;
  /** JavaScript heap of a child in megabytes. */
  readonly maxHeapMb: number;
  /** Concurrent children. */
  readonly maxChildren: number;
  /** Files on disk that wait for a child. */
  readonly maxWaiting: number;
}

/**
 * Real files of 350 pages take 2 s and 150 MB. A book of 5,000 pages has 12 million code units. A longer document is refused
 * and not cut, because a search in half a document misleads. One file in work and seven waiting are as many as the uploads
 * that the service accepts at a time (http/routes/documents.ts), so it refuses no file that was sent.
 */
export const EXTRACT_LIMITS: ExtractLimits = {
  maxBytes: 50 * 1024 * 1024,
  maxPages: 5_000,
  maxTextUnits: 16_000_000,
  timeoutMs: 15_000,
  maxMemoryMb: 768,
  maxHeapMb: 512,
  maxChildren: 1,
  maxWaiting: 7,
};

export interface PdfPage {
  /** From 1. */
  readonly page: number;
  /** Well-formed, without NUL, NFC. Lines end with a line feed, paragraphs with two. Empty if the page has no text. */
  readonly text: string;
}

interface PdfText {
  readonly pages: readonly PdfPage[];
  /** The parser that read the text. */
  readonly parser: Parser;
}

interface ExtractionDeps {
  readonly system: Pick<System, 'after'>;
  readonly limits: ExtractLimits;
  readonly signal: AbortSignal;
  readonly pid: number;
}

/**
 * The text by pdfjs-dist, which reads better and faster, or by pdf2json if pdfjs fails, exceeds its memory, or finds no
 * letter on any page. If pdf2json finds none either, the result of pdfjs counts. A file that takes pdfjs too long is
 * refused, because pdf2json is slower.
 *
 * @throws {PdfRefused | ExtractionTimedOut | ServiceStopping}
 */
async function textWithFallback(bytes: Uint8Array, deps: ExtractionDeps): Promise<PdfText> {
  const { system, limits, signal, pid } = deps;
  const attempt = (parser: Parser): Promise<ChildEnd> => {
    const [maxProcessorMs, maxMemoryBytes] = [limits.timeoutMs, limits.maxMemoryMb * 1024 * 1024];
    return runChild({ ...limits, parser, bytes, maxProcessorMs, maxMemoryBytes, parentPid: pid, signal }, system);
  };

  const first = await attempt('pdfjs');
  const isLast = isFinal(first) || first.kind === 'timed-out' || mentionsEncryption(bytes);
  if (isLast) return outcome('pdfjs', first, limits);
  const second = await attempt('pdf2json');
  return isFinal(second) ? outcome('pdf2json', second, limits) : outcome('pdfjs', first, limits);
}

/** Whether the other parser cannot help: there is text, or a result that does not depend on the parser. */
function isFinal(end: ChildEnd): boolean {
  if (end.kind === 'text') return end.texts.some((text) => text !== '');
  return ['encrypted', 'xfa-form', 'portfolio', 'too-many-pages', 'too-much-text', 'stopped'].includes(end.kind);
}

function outcome(parser: Parser, end: ChildEnd, limits: ExtractLimits): PdfText {
  if (end.kind === 'stopped') throw new ServiceStopping();
  if (end.kind !== 'text') throw refusal(end, limits);
  return { parser, pages: end.texts.map((text, index) => ({ page: index + 1, text })) };
}

function refusal(
  end: Exclude<ChildEnd, { kind: 'text' | 'stopped' }>,
  limits: ExtractLimits,
): PdfRefused | ExtractionTimedOut {
  switch (end.kind) {
    case 'encrypted':
    case 'xfa-form':
    case 'portfolio':
      return new PdfRefused({ reason: end.kind });
    case 'too-many-pages':
      return new PdfRefused({ reason: 'too-many-pages', found: end.found, limit: limits.maxPages });
    case 'too-much-text':
      return new PdfRefused({ reason: 'too-much-text', limit: limits.maxTextUnits });
    case 'timed-out':
      return new ExtractionTimedOut({ processorMs: limits.timeoutMs, clockMs: limits.timeoutMs * CLOCK_FACTOR });
    case 'out-of-memory':
      return new PdfRefused({ reason: 'out-of-memory', limit: limits.maxMemoryMb });
    case 'failed':
      return new PdfRefused({ reason: 'unreadable' }, { cause: new Error(end.reason) });
    default:
      return end satisfies never;
  }
}

/** Number of bytes at the start of a file that must contain the header (ISO 32000-1, annex H). */
const HEADER_WITHIN = 1_024;

function isPdf(bytes: Uint8Array): boolean {
  return view(bytes.subarray(0, HEADER_WITHIN)).includes('%PDF-', 0, 'latin1');
}

/** Whether the file may be encrypted. pdf2json does not get such a file, because it may return a part without an error. */
function mentionsEncryption(bytes: Uint8Array): boolean {
  return view(bytes).includes('/Encrypt', 0, 'latin1');
}

function view(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

interface ChildTask extends ChildOptions {
  readonly bytes: Uint8Array;
  /** Kills the child when it aborts. */
  readonly signal: AbortSignal;
}

/**
 * Limit of elapsed time as a multiple of the limit of processor time. It ends a child that hangs without using the
 * processor; a smaller factor would refuse files on a busy machine.
 */
const CLOCK_FACTOR = 8;

const PROGRAM = fileURLToPath(new URL('./extract-child.js', import.meta.url));

/** The package of this file: its code is in dist. */
const PACKAGE = fileURLToPath(new URL('../../../', import.meta.url));

/**
 * Flags of Node that hold for all threads of a child, if a file made its parser run code: it makes no code of texts, writes no
 * file, reads none but the code of parsers, starts no program and loads no native code. Node 20 has the permissions under the
 * second name. No version before 25 restricts the network.
 */
export function restrictions(): readonly string[] {
  const permission = ['--permission', '--experimental-permission'].find((flag) =>
    process.allowedNodeEnvironmentFlags.has(flag),
  );
  const { resolve } = createRequire(import.meta.url);
  const modules = ['pdfjs-dist/package.json', 'pdf2json'].map((name) =>
    resolve(name).replace(/(.*node_modules).*/, '$1'),
  );
  const code = new Set([join(PACKAGE, 'dist'), join(PACKAGE, 'node_modules'), ...modules]);
  const readable = [join(PACKAGE, 'package.json'), ...[...code].map((folder) => join(folder, '*'))];
  const noCode = '--disallow-code-generation-from-strings';
  if (permission === undefined) return [noCode];
  return [noCode, permission, '--allow-worker', ...readable.map((path) => `--allow-fs-read=${path}`)];
}

/** Runs a child with an empty environment. Resolves when it has ended in any way. */
function runChild({ bytes, signal, ...options }: ChildTask, { after }: Pick<System, 'after'>): Promise<ChildEnd> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve({ kind: 'stopped' });
    const child = spawn(
      process.execPath,
      [
        ...[`--max-old-space-size=${options.maxHeapMb}`, ...restrictions()],
        ...[PROGRAM, JSON.stringify(options satisfies ChildOptions)],
      ],
      {
        env: {},
        stdio: ['pipe', 'ignore', 'ignore', 'pipe'],
        windowsHide: true,
      },
    );
    let cut: ChildEnd | null = null;
    const kill = (why: ChildEnd): void => {
      cut ??= why;
      child.kill('SIGKILL');
    };
    const cancel = after(options.maxProcessorMs * CLOCK_FACTOR, () => kill({ kind: 'timed-out' }));
    const stop = (): void => kill({ kind: 'stopped' });
    signal.addEventListener('abort', stop);

    const messages = messageReader(
      () => kill({ kind: 'failed', reason: 'The parser sent an invalid message' }),
      options,
    );
    const results = child.stdio[3];
    if (!(results instanceof Readable)) throw new TypeError('A child process has no pipe of results');
    results.setEncoding('utf8');
    results.on('data', (part: string) => messages.read(part));
    results.on('error', () => undefined);
    // The pipe fails if a child exits before it has read all of its input.
    child.stdin?.on('error', () => undefined);
    child.stdin?.end(bytes);

    const settle = (end: ChildEnd): void => {
      cancel();
      signal.removeEventListener('abort', stop);
      resolve(end);
    };
    child.on('error', (error) => settle({ kind: 'failed', reason: error.message }));
    child.on('close', (code, killedBy) => {
      // A complete result counts, even if the child was killed right after it.
      settle(messages.end() ?? cut ?? { kind: 'failed', reason: `The parser ended with ${killedBy ?? code}` });
    });
  });
}
