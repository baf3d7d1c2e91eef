/**
 * Extracts the text of PDFs, page by page. Files and parsers are untrusted: each file has a child process of its own.
 */
import type { System } from '../system/system.js';
import { ServiceStopping } from '../errors.js';
import { textWithFallback, type PdfText } from './parser-fallback.js';
import { EXTRACT_LIMITS, type ExtractLimits } from './limits.js';
import { isPdf } from './sniff.js';
import { ExtractionBusy, PdfRefused } from './errors.js';

export interface PdfExtractor {
  /**
   * The text of every page. A PDF without text is not an error: its pages are empty.
   *
   * @param read returns the file's bytes; called when the file's turn comes, so that waiting files are not in memory
   * @throws {PdfRefused} the file is not a PDF, broken, encrypted, or exceeds a limit
   * @throws {ExtractionBusy} the queue is full
   * @throws {ServiceStopping} before or during the work, after `stop()`; what `read` throws
   */
  extract(read: () => Promise<Uint8Array>): Promise<PdfText>;
  /** Refuses new and waiting files, kills the children, resolves when all have ended. May be called twice. */
  stop(): Promise<void>;
}

/** Extraction with these limits. Its only state is its queue; it writes nothing to disk. */
export function pdfExtractor({
  system,
  pid,
  limits = EXTRACT_LIMITS,
}: {
  system: Pick<System, 'after' | 'monotonicMs'>;
  /** Id of this process: children end when it does. */
  pid: number;
  limits?: ExtractLimits;
}): PdfExtractor {
  const stopping = new AbortController();
  const waiting: (() => void)[] = [];
  const inFlight = new Set<Promise<unknown>>();
  let free = limits.maxChildren;

  const slot = (): Promise<void> => {
    if (stopping.signal.aborted) throw new ServiceStopping();
    if (free > 0) {
      free -= 1;
      return Promise.resolve();
    }
    if (waiting.length >= limits.maxWaiting) throw new ExtractionBusy({ limit: limits.maxWaiting });
    return new Promise((resolve) => waiting.push(resolve));
  };
  const leave = (): void => {
    const next = waiting.shift();
    if (next === undefined) free += 1;
    else next();
  };

  const inSlot = async (read: () => Promise<Uint8Array>): Promise<PdfText> => {
    await slot();
    try {
      const bytes = await read();
      if (bytes.length > limits.maxBytes) throw new PdfRefused({ reason: 'too-large', limit: limits.maxBytes });
      if (!isPdf(bytes)) throw new PdfRefused({ reason: 'not-a-pdf' });
      return await textWithFallback(bytes, { system, limits, pid, signal: stopping.signal });
    } finally {
      leave();
    }
  };

  return {
    async extract(read) {
      const work = inSlot(read);
      inFlight.add(work);
      return work.finally(() => inFlight.delete(work));
    },
    async stop() {
      stopping.abort();
      await Promise.allSettled(inFlight);
    },
  };
}
