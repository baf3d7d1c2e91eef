/**
 * Marks by which drafts cite pages of documents: `[4f2a9c01:3]` is page 3 of the document whose id begins with 4f2a9c01.
 * A run knows the pages that its tools returned; a mark of any other page is unknown.
 */
import type { RunCompletedData, ToolHit } from '../generated/schemas.js';

/** The known pages after a tool's hits, or null if there are too many to keep. */
export function withSources(sources: readonly string[] | null, hits: readonly ToolHit[]): readonly string[] | null {
  if (sources === null) return null;
  const all = new Set(sources);
  for (const hit of hits) if ('document' in hit) all.add(sourceOf(hit.document, hit.page));
  if (all.size === sources.length) return sources;
  return all.size > MAX_SOURCES ? null : [...all];
}

/**
 * The unknown marks in the draft of a completed run, each once, in order, at most 50. Absent if there are neither pages
 * nor marks, or too many pages to keep.
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
  /** Hex digits of an id; or a file name, which is always unknown. */
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

/** A page's key, with the id cut to the length of a mark. */
function sourceOf(document: string, page: number): string {
  return `${document.slice(0, MARK_CHARS).toLowerCase()}:${page}`;
}

/** No bracket inside, so that matching is linear. */
const BRACKETS = /\[([^[\]\n]{3,400})\]/g;

/** Hex digits of an id or a file name, then a colon and a page. */
const MARK = /^([0-9a-f]{8,64}|[^:]{1,120}\.pdf):\s?(\d{1,6})$/i;

/** Length of a document's id in a mark. */
export const MARK_CHARS = 8;

/** Most pages kept for a run, at 14 bytes each. */
const MAX_SOURCES = 4096;

/** Most unknown marks in the last event. */
const MAX_UNKNOWN = 50;
