/** Two parsers for one file: the second reads what the first could not, in the remaining time. */
import type { System } from '../system/system.js';
import { ServiceStopping } from '../errors.js';
import type { Parser } from './child-protocol.js';
import { runChild } from './child-process.js';
import type { ChildEnd } from './child-protocol.js';
import type { ExtractLimits } from './limits.js';
import { mentionsEncryption } from './sniff.js';
import { PdfRefused } from './errors.js';

export interface PdfPage {
  /** From 1. */
  readonly page: number;
  /** Well-formed, without NUL, NFC; lines end in a line feed, paragraphs in two. Empty when the page has no text. */
  readonly text: string;
}

export interface PdfText {
  readonly pages: readonly PdfPage[];
  /** The parser that read the text. */
  readonly parser: Parser;
}

/** Share of the time for the first parser, so that the second can still read a file on which the first hangs. */
const FIRST_SHARE = 0.6;

interface ExtractionDeps {
  readonly system: Pick<System, 'after' | 'monotonicMs'>;
  readonly limits: ExtractLimits;
  readonly signal: AbortSignal;
  /** Id of this process: children end when it does. */
  readonly pid: number;
}

/**
 * The text by pdfjs-dist, which reads better and faster; by pdf2json where pdfjs fails: it ends in an error, takes more
 * than its share of the time or its memory, or finds no letter on any page. Single empty pages
 * are not retried. Where pdf2json finds nothing either, the result of pdfjs stands.
 *
 * @throws {PdfRefused} neither reads it within the limits
 * @throws {ServiceStopping} the signal aborted
 */
export async function textWithFallback(
  bytes: Uint8Array,
  { system, limits, signal, pid }: ExtractionDeps,
): Promise<PdfText> {
  const from = system.monotonicMs();
  const attempt = (parser: Parser, maxMs: number): Promise<ChildEnd> => {
    const maxMemoryBytes = limits.maxMemoryMb * 1024 * 1024;
    return runChild({ ...limits, parser, bytes, maxMs, maxMemoryBytes, parentPid: pid, signal }, system);
  };

  const first = await attempt('pdfjs', limits.timeoutMs * FIRST_SHARE);
  if (isFinal(first) || mentionsEncryption(bytes)) return outcome('pdfjs', first, limits);
  const second = await attempt('pdf2json', Math.max(0, limits.timeoutMs - (system.monotonicMs() - from)));
  return isFinal(second) ? outcome('pdf2json', second, limits) : outcome('pdfjs', first, limits);
}

/** Whether the second parser cannot help: there is text, or a result that does not depend on the parser. */
function isFinal(end: ChildEnd): boolean {
  if (end.kind === 'text') return end.texts.some((text) => text !== '');
  return ['encrypted', 'too-many-pages', 'too-much-text', 'stopped'].includes(end.kind);
}

function outcome(parser: Parser, end: ChildEnd, limits: ExtractLimits): PdfText {
  if (end.kind === 'stopped') throw new ServiceStopping();
  if (end.kind !== 'text') throw refusal(end, limits);
  return { parser, pages: end.texts.map((text, index) => ({ page: index + 1, text })) };
}

function refusal(end: Exclude<ChildEnd, { kind: 'text' | 'stopped' }>, limits: ExtractLimits): PdfRefused {
  switch (end.kind) {
    case 'encrypted':
      return new PdfRefused({ reason: 'encrypted' });
    case 'too-many-pages':
      return new PdfRefused({ reason: 'too-many-pages', found: end.found, limit: limits.maxPages });
    case 'too-much-text':
      return new PdfRefused({ reason: 'too-much-text', limit: limits.maxTextUnits });
    case 'timed-out':
      return new PdfRefused({ reason: 'timed-out', limit: limits.timeoutMs });
    case 'out-of-memory':
      return new PdfRefused({ reason: 'out-of-memory', limit: limits.maxMemoryMb });
    case 'failed':
      return new PdfRefused({ reason: 'unreadable' }, { cause: new Error(end.reason) });
    default:
      return end satisfies never;
  }
}
