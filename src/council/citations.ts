/**
 * Marks by which drafts cite pages of documents: `[4f2a9c01:3]` is page 3 of the document whose id begins with 4f2a9c01.
 * A run knows the pages its tools have given out; a mark of any other page is unknown.
 */
import type { RunCompletedData, ToolHit } from '../generated/schemas.js';

/** The pages given out so far, after a tool's hits; null once they are more than are kept. */
export function withSources(sources: readonly string[] | null, hits: readonly ToolHit[]): readonly string[] | null {
  if (sources === null) return null;
  const all = new Set(sources);
  for (const hit of hits) if ('document' in hit) all.add(sourceOf(hit.document, hit.page));
  if (all.size === sources.length) return sources;
  return all.size > MAX_SOURCES ? null : [...all];
}

/**
 * The marks in a completed run's draft that name no page it was given, each once, in order, at most 50. Left out when
 * there are neither pages nor marks, or when there were too many pages to keep.
 */
export function unknownMarks(
  draft: string | null,
  sources: readonly string[] | null,
): Pick<RunCompletedData, 'unknownCitations'> {
  if (sources === null) return {};
  const known = new Set(sources);
  const unknown = new Set<string>();
  for (const mark of draft === null ? [] : marksIn(draft)) {
    if (!known.has(sourceOf(mark.document, mark.page))) unknown.add(`${mark.document}:${mark.page}`);
    if (unknown.size === MAX_UNKNOWN) break;
  }
  return sources.length === 0 && unknown.size === 0 ? {} : { unknownCitations: [...unknown] };
}

interface Mark {
  /** Hex digits of an id, or a file name, which no mark should hold. */
  readonly document: string;
  readonly page: number;
}

/** Every mark of a text, also several between one pair of brackets. */
function* marksIn(text: string): Generator<Mark> {
  for (const [, inside = ''] of text.matchAll(BRACKETS)) {
    for (const part of inside.split(/[,;]/)) {
      const [, document, page] = MARK.exec(part.trim()) ?? [];
      if (document !== undefined && page !== undefined) yield { document, page: Number(page) };
    }
  }
}

/** A page's key: the id is cut to the length a mark holds. */
function sourceOf(document: string, page: number): string {
  return `${document.slice(0, MARK_CHARS).toLowerCase()}:${page}`;
}

/** Without a bracket inside, so that no two openings compete for one end. */
const BRACKETS = /\[([^[\]\n]{3,400})\]/g;

/** Hex digits of an id or the name of a file, a colon, a page. */
const MARK = /^([0-9a-f]{8,64}|[^:]{1,120}\.pdf):\s?(\d{1,6})$/i;

/** Characters of a document's id in a mark, as tools/pdf-reader.ts writes it. */
const MARK_CHARS = 8;

/** Pages kept of a run: 14 bytes each in the state of every run in memory. */
const MAX_SOURCES = 4096;

/** Unknown marks named by the last event. */
const MAX_UNKNOWN = 50;
