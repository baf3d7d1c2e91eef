/**
 * The text of each file, had once. A test that is not about the extraction need not wait for a child process: the first
 * parser reads most files, in a thread that has loaded it. What that cannot read goes through the real extraction.
 */
import { nodeSystem } from '../../src/system/system.js';
import type { PdfExtractor } from '../../src/pdf/extract.js';
import { EXTRACT_LIMITS, pdfExtractor } from '../../src/pdf/extract.js';
import type { ChildMessage } from '../../src/pdf/child-protocol.js';
import type { ParserTask } from '../../src/pdf/parser-thread.js';
import { idOf } from './upload-client.js';
import { startWarmThread } from './warm-threads.js';

/** A busy machine may take its time. */
const PATIENT = { ...EXTRACT_LIMITS, timeoutMs: 300_000 };

const END = '%%EOF\n';
const MAX_COMMENT = 300;

type Extracted = Awaited<ReturnType<PdfExtractor['extract']>>;

/** Of this process, by the hash of their bytes; copies have the text of what they are copies of. */
const texts = new Map<string, Extracted>();

export function rememberingExtractor(): PdfExtractor {
  const extractor = pdfExtractor({ system: nodeSystem(), pid: process.pid, limits: PATIENT });
  return {
    async extract(read) {
      const bytes = await read();
      const id = idOf(withoutComment(bytes));
      const text =
        texts.get(id) ?? (await firstParsed(bytes)) ?? (await extractor.extract(() => Promise.resolve(bytes)));
      texts.set(id, text);
      return text;
    },
    stop: () => extractor.stop(),
  };
}

const PARSER = new URL('../../src/pdf/parser-thread.js', import.meta.url);

/** What the first parser finds; null: it does not settle it alone. */
function firstParsed(bytes: Uint8Array): Promise<Extracted | null> {
  if (Buffer.from(bytes.subarray(0, 5)).toString('latin1') !== '%PDF-') return Promise.resolve(null);
  const options = { ...EXTRACT_LIMITS, parser: 'pdfjs' } as const;
  const pages: { readonly page: number; readonly text: string }[] = [];
  let isDone = false;
  const thread = startWarmThread(PARSER, { options, bytes } satisfies ParserTask);
  thread.on('message', (message) => {
    const said = message as ChildMessage;
    if (said.kind === 'page') pages.push({ page: pages.length + 1, text: said.text });
    else isDone = said.kind === 'done';
  });
  return new Promise((resolve, reject) => {
    thread.on('error', reject);
    thread.on('exit', () =>
      resolve(isDone && pages.some(({ text }) => text !== '') ? { parser: 'pdfjs', pages } : null),
    );
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
