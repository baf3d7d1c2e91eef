/**
 * The text of each file, had once. A test that is not about the extraction need not wait for a child process: each parser
 * reads in a thread that has loaded it. What files do to the service stays with the tests that have the processes.
 */
import { nodeSystem } from '../../src/system/system.js';
import type { ChildTask, PdfExtractor } from '../../src/pdf/extract.js';
import { EXTRACT_LIMITS, pdfExtractor } from '../../src/pdf/extract.js';
import type { ChildEnd, ChildMessage } from '../../src/pdf/child-protocol.js';
import type { ParserTask } from '../../src/pdf/parser-thread.js';
import { idOf } from './upload-client.js';
import { startWarmThread } from './warm-threads.js';

/** A busy machine may take its time, and whoever asks the engine itself is not held to the places of uploads. */
const PATIENT = { ...EXTRACT_LIMITS, timeoutMs: 300_000, maxWaiting: 1_000 };

const END = '%%EOF\n';
const MAX_COMMENT = 300;

type Extracted = Awaited<ReturnType<PdfExtractor['extract']>>;

/** Of this process, by the hash of their bytes; copies have the text of what they are copies of. */
const texts = new Map<string, Extracted>();

export function rememberingExtractor(): PdfExtractor {
  const extractor = pdfExtractor({ system: nodeSystem(), pid: process.pid, limits: PATIENT, run: runInThread });
  return {
    async extract(read) {
      const bytes = await read();
      const id = idOf(withoutComment(bytes));
      const text = texts.get(id) ?? (await extractor.extract(() => Promise.resolve(bytes)));
      texts.set(id, text);
      return text;
    },
    stop: () => extractor.stop(),
  };
}

const PARSER = new URL('../../src/pdf/parser-thread.js', import.meta.url);

/** What a parser finds, without the limits of a process: the thread ends by itself. */
function runInThread({ bytes, signal, ...options }: ChildTask): Promise<ChildEnd> {
  const thread = startWarmThread(PARSER, { options, bytes } satisfies ParserTask);
  const found: string[] = [];
  let end: ChildEnd = { kind: 'failed', reason: 'The parser ended without a word' };
  thread.on('message', (message) => {
    const said = message as ChildMessage;
    if (said.kind === 'page') found.push(said.text);
    else end = said.kind === 'done' ? { kind: 'text', texts: found } : said;
  });
  return new Promise((resolve, reject) => {
    thread.on('error', reject);
    thread.on('exit', () => resolve(signal.aborted ? { kind: 'stopped' } : end));
  });
}

/** A file without the comment behind its end that makes it a copy. */
function withoutComment(bytes: Uint8Array): Uint8Array {
  const file = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const end = file.lastIndexOf(END) + END.length;
  return file.length < end + MAX_COMMENT && /^% .+\n$/.test(file.toString('latin1', end))
    ? file.subarray(0, end)
    : file;
}
