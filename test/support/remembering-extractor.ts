/** The real extraction, once for each file: a test that is not about it need not wait for a child process each time. */
import { nodeSystem } from '../../src/system/system.js';
import type { PdfExtractor } from '../../src/pdf/extract.js';
import { EXTRACT_LIMITS, pdfExtractor } from '../../src/pdf/extract.js';
import { idOf } from './upload-client.js';

/** A busy machine may take its time. */
const PATIENT = { ...EXTRACT_LIMITS, timeoutMs: 300_000 };

const END = '%%EOF\n';
const MAX_COMMENT = 300;

/** Of this process, by the hash of their bytes; copies have the text of what they are copies of. */
const texts = new Map<string, Awaited<ReturnType<PdfExtractor['extract']>>>();

export function rememberingExtractor(): PdfExtractor {
  const extractor = pdfExtractor({ system: nodeSystem(), pid: process.pid, limits: PATIENT });
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

/** A file without the comment behind its end that makes it a copy. */
function withoutComment(bytes: Uint8Array): Uint8Array {
  const file = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const end = file.lastIndexOf(END) + END.length;
  return file.length < end + MAX_COMMENT && /^% .+\n$/.test(file.toString('latin1', end))
    ? file.subarray(0, end)
    : file;
}
