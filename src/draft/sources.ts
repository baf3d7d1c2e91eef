/** What the tools of a run have found, and the marks by which drafts cite it. */
import type { RunEvent } from '../client/run-events.js';
import type { DraftSource } from '../generated/schemas.js';
import type { DraftElement, DraftNode } from './draft-tree.js';

/** A page of a document, or a page of the web. */
export type Source = {
  /** The nodes that read it, by id; none if only a parent of the run has read it. */
  readonly readBy: readonly string[];
} & (
  | { readonly kind: 'document'; readonly document: string; readonly page: number; readonly chunk: number }
  | { readonly kind: 'web'; readonly url: string; readonly title: string }
);

/** Digits of a document's id in a mark. */
const MARK_CHARS = 8;

/** The sources up to and including an event, each once, in the order in which tools found them. */
export function sourcesAt(events: readonly RunEvent[], seq: number): readonly Source[] {
  const found = new Map<string, Source>();
  for (const { type, data } of events.slice(0, seq + 1)) {
    if (type !== 'ToolCalled') continue;
    for (const hit of data.hits) {
      const own =
        'document' in hit
          ? ({ kind: 'document', document: hit.document, page: hit.page, chunk: hit.chunk } as const)
          : ({ kind: 'web', url: hit.url, title: hit.title } as const);
      const key = keyOf({ ...own, readBy: [] });
      const before = found.get(key) ?? { ...own, readBy: [] };
      found.set(key, { ...before, readBy: [...new Set([...before.readBy, data.node])] });
    }
  }
  return [...found.values()];
}

/** Whether two lists of a run's sources, each up to an event, have the same sources. */
export function areSame(one: readonly Source[], other: readonly Source[]): boolean {
  const readersIn = (sources: readonly Source[]): number => sources.reduce((sum, { readBy }) => sum + readBy.length, 0);
  return one.length === other.length && readersIn(one) === readersIn(other);
}

/** The sources of a run, followed by others that its parents have read. */
export function withInherited(own: readonly Source[], inherited: readonly Source[]): readonly Source[] {
  const known = new Set(own.map(keyOf));
  return [...own, ...inherited.filter((source) => !known.has(keyOf(source)))];
}

/** A cited page as a source of a run, or none if no tool has found it. */
export function sourcesOf({ document, page, chunks: [chunk], url, title }: DraftSource): readonly Source[] {
  if (url !== null) return [{ kind: 'web', url, title: title ?? '', readBy: [] }];
  if (document === null || page === null || chunk === undefined) return [];
  return [{ kind: 'document', document, page, chunk, readBy: [] }];
}

/** Identifies a source. */
export function keyOf(source: Source): string {
  return source.kind === 'document' ? markOf(source) : source.url;
}

/** The mark of a page without brackets, such as `4f2a9c01:3`. */
export function markOf({ document, page }: { readonly document: string; readonly page: number }): string {
  return `${document.slice(0, MARK_CHARS).toLowerCase()}:${page}`;
}

/** The file name of a document, or the first digits of its id if the name is unknown. */
export function documentName(id: string, filename: string | null | undefined): string {
  return filename ?? `Document ${id.slice(0, MARK_CHARS)}`;
}

/** The sources that a draft cites, in the order in which it does. */
export function citedSources(draft: string, sources: readonly Source[]): readonly Source[] {
  const marks = marksIn(draft);
  const at = (source: Source): number => {
    if (source.kind === 'web') return draft.indexOf(source.url);
    return marks.findLast(({ mark }) => mark === markOf(source))?.at ?? -1;
  };
  return sources
    .map((source) => ({ source, at: at(source) }))
    .filter((each) => each.at >= 0)
    .sort((a, b) => a.at - b.at)
    .map(({ source }) => source);
}

/** Brackets without brackets inside, so that matching is linear, and a mark between them. */
const [BRACKETS, MARK] = [/\[([^[\]\n]{3,400})\]/g, /^\s*([0-9a-f]{8,64}):\s?(\d{1,6})\s*$/i];

/** Whether a text has a mark of a page that is not among the sources. */
export function hasUnknownMark(text: string, sources: readonly Source[]): boolean {
  const known = new Set(sources.map(keyOf));
  return marksIn(text).some(({ mark }) => !known.has(mark));
}

interface FoundMark {
  readonly mark: string;
  readonly at: number;
}

/** The marks of a text, the last first. */
function marksIn(text: string): readonly FoundMark[] {
  return [...text.matchAll(BRACKETS)]
    .flatMap(({ 1: inside = '', index }) =>
      inside.split(/[,;]/).flatMap((part) => {
        const mark = markIn(part);
        return mark === null ? [] : [{ mark, at: index + inside.indexOf(part) }];
      }),
    )
    .reverse();
}

function markIn(text: string): string | null {
  const [, document, page] = MARK.exec(text) ?? [];
  return document === undefined ? null : markOf({ document, page: Number(page) });
}

/** How a draft shows a mark. */
export interface Citation {
  /** Its number in the list of sources. */
  readonly number: number;
  readonly title: string;
  /** Or null without a page to link to. */
  readonly href: string | null;
}

/** What citations show of sources. */
export interface SourceNaming {
  /** The file names of documents by id; one without a name has its id. */
  readonly names: ReadonlyMap<string, string>;
  /** The address of a source, or null without a page to link to. */
  readonly hrefOf: (source: Source) => string | null;
}

/** A source in words: `Bathing and health.pdf, page 2`. */
export function sourceText(source: Source, names: SourceNaming['names']): string {
  if (source.kind === 'web') return source.title.trim() === '' ? source.url : source.title;
  return `${documentName(source.document, names.get(source.document))}, page ${source.page}`;
}

/** The marks of cited pages as numbers in their list. */
export function citationsOf(cited: readonly Source[], { names, hrefOf }: SourceNaming): ReadonlyMap<string, Citation> {
  return new Map(
    cited.flatMap((source, at) => {
      if (source.kind === 'web') return [];
      const number = at + 1;
      const title = `Source ${number}: ${sourceText(source, names)}`;
      return [[markOf(source), { number, title, href: hrefOf(source) }] as const];
    }),
  );
}

/** A draft in which each known mark is an element `cite`. Unknown marks stay. @param citations by their marks */
export function withCitations(
  tree: readonly DraftNode[],
  citations: ReadonlyMap<string, Citation>,
): readonly DraftNode[] {
  if (citations.size === 0) return tree;
  return tree.flatMap((node): readonly DraftNode[] => {
    if (typeof node === 'string') return textWithCitations(node, citations);
    if (node.tag === 'code' || node.tag === 'a') return [node];
    return [{ ...node, children: withCitations(node.children, citations) }];
  });
}

function textWithCitations(text: string, citations: ReadonlyMap<string, Citation>): readonly DraftNode[] {
  const nodes: DraftNode[] = [];
  let from = 0;
  for (const { 0: whole, 1: inside = '', index } of text.matchAll(BRACKETS)) {
    const cited = inside.split(/[,;]/).map((part) => citations.get(markIn(part) ?? ''));
    if (!cited.every((each) => each !== undefined)) continue;
    nodes.push(text.slice(from, index), ...cited.map(citeElement));
    from = index + whole.length;
  }
  return [...nodes, text.slice(from)].filter((node) => node !== '');
}

function citeElement({ number, title, href }: Citation): DraftElement {
  return { tag: 'cite', children: [`[${number}]`], title, ...(href !== null && { href }) };
}
