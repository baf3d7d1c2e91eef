/** One file, two parsers: the second reads what the first could not, or not well, in the time that is left. */
import type { Ambient } from '../ambient.js';
import { ServiceStopping } from '../errors.js';
import type { Parser } from './child-messages.js';
import { runChild } from './child-process.js';
import type { ChildEnd } from './child-reader.js';
import type { ExtractLimits } from './extract-limits.js';
import { isForSecondParser } from './file-signs.js';
import { PdfRefused } from './refused.js';

export interface PdfPage {
  /** From 1. */
  readonly page: number;
  /** Well-formed, without NUL, NFC; lines end in a line feed, paragraphs in two. Empty when the page has no text. */
  readonly text: string;
}

export interface PdfText {
  readonly pages: readonly PdfPage[];
  /** Whose text it is. */
  readonly parser: Parser;
}

/** Share of the time that the first parser may take; the second is the faster one. */
const FIRST_SHARE = 0.6;

interface Circumstances {
  readonly ambient: Pick<Ambient, 'after' | 'monotonicMs'>;
  readonly limits: ExtractLimits;
  readonly signal: AbortSignal;
  /** Of this process, for the children to end with it. */
  readonly pid: number;
}

/**
 * The text by pdf2json; by pdfjs-dist when pdf2json gave no verdict, failed, or its text is in doubt. A text in doubt
 * is still taken when the second parser reads nothing.
 *
 * @throws {PdfRefused} neither reads it within the limits
 * @throws {ServiceStopping} the signal aborted
 */
export async function textByEither(
  bytes: Uint8Array,
  { ambient, limits, signal, pid }: Circumstances,
): Promise<PdfText> {
  const from = ambient.monotonicMs();
  const attempt = (parser: Parser, maxMs: number): Promise<ChildEnd> => {
    const maxMemoryBytes = limits.maxMemoryMb * 1024 * 1024;
    return runChild({ ...limits, parser, bytes, maxMs, maxMemoryBytes, parentPid: pid, signal }, ambient);
  };

  const first = isForSecondParser(bytes, limits) ? null : await attempt('pdf2json', limits.timeoutMs * FIRST_SHARE);
  if (first?.kind === 'text' && first.doubts.length === 0) return pdfText('pdf2json', first.texts);
  if (first?.kind === 'stopped') throw new ServiceStopping();

  const second = await attempt('pdfjs', Math.max(0, limits.timeoutMs - (ambient.monotonicMs() - from)));
  if (second.kind === 'text') return pdfText('pdfjs', second.texts);
  if (second.kind === 'stopped') throw new ServiceStopping();
  if (first?.kind === 'text' && !isVerdict(second)) return pdfText('pdf2json', first.texts);
  throw refusal(second, limits);
}

/** What holds whatever another parser read. */
function isVerdict({ kind }: ChildEnd): boolean {
  return kind === 'encrypted' || kind === 'too-many-pages' || kind === 'too-much-text';
}

function pdfText(parser: Parser, texts: readonly string[]): PdfText {
  return { parser, pages: texts.map((text, index) => ({ page: index + 1, text })) };
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
