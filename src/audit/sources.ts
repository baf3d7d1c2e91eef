/** What the draft of a run cites: pages that its tools have found, and whether they have the words that it quotes. */
import { citationsIn } from '../draft/quotations.js';
import type { CitedPlace } from '../draft/quotations.js';
import type { QuotationVerdict, ToolHit } from '../generated/schemas.js';
import type { RunEvent } from '../run/events.js';
import { upcast } from '../run/events.js';
import type { RunState } from '../run/state.js';
import { finalDraftOf } from '../run/state.js';
import { foldNext } from '../run/stream.js';
import type { FoldEvents, Generation } from './parents.js';
import { parentsOf } from './parents.js';
import type { SourceText } from './quotations.js';
import { quotationJudge } from './quotations.js';

/** A place where a draft cites a page. */
export interface JudgedCitation {
  /** The words in quotation marks before it, or null if there are none. */
  readonly quoted: string | null;
  /** Null if the draft quotes nothing here, or the record lacks the text of the page. */
  readonly quotation: QuotationVerdict | null;
}

/** A cited page of a document or of the web. */
export interface CitedPage {
  /** As in the draft, without brackets; of the web its address. */
  readonly mark: string;
  /** Id of the document, or null if no tool of the run has found this page, and of the web. */
  readonly document: string | null;
  /** Null of the web. */
  readonly page: number | null;
  /** The found chunks of the page. */
  readonly chunks: readonly number[];
  /** Address and title of a page of the web, or null. */
  readonly url: string | null;
  readonly title: string | null;
  /** The worst of its citations. */
  readonly quotation: QuotationVerdict | null;
  readonly citations: readonly JudgedCitation[];
}

export interface CitedPagesDeps {
  readonly folded: FoldEvents;
  /** The texts of some pages of a document, or null if it is unknown, deleted or damaged. */
  readonly pagesOf: (document: string, pages: ReadonlySet<number>) => Promise<ReadonlyMap<number, string> | null>;
  /** Lets other work run. */
  readonly pause: () => Promise<void>;
}

/** What a run has found, and its draft. */
interface Found extends Generation {
  readonly draft: string;
  readonly hits: readonly ToolHit[];
}

/** A page before its quotations are judged. */
interface Cited extends Omit<CitedPage, 'quotation' | 'citations'> {
  readonly quoted: (string | null)[];
}

/**
 * The pages that the final or current draft of a run cites, each once, in order, or null if there are no events. A fork also
 * has what its parents had found before the fork point, as far as they can be read and are those that it continues.
 *
 * @throws {RunCorrupt} an event of the run is invalid
 */
export async function citedPagesOf(runId: string, deps: CitedPagesDeps): Promise<readonly CitedPage[] | null> {
  // 1. What the run and its parents have found.
  const { folded, pagesOf } = deps;
  const own = await folded(runId, (events) => foundIn(runId, events));
  if (own === null) return null;
  const mayCite = own.draft.includes('://') || citationsIn(own.draft, new Set()).length > 0;
  const parents = mayCite ? await parentsOf(own, folded, foundIn) : [];
  const hits = [own, ...parents].flatMap((each) => each.hits);

  // 2. What the draft cites of it.
  const cited = citedIn(own.draft, hits);

  // 3. The texts of its pages of documents.
  const texts = new Map<string, ReadonlyMap<number, string> | null>();
  for (const [document, pages] of pagesToRead(cited)) texts.set(document, await pagesOf(document, pages));

  // 4. Whether they have the quoted words.
  const judged: CitedPage[] = [];
  for (const { quoted, ...page } of cited) {
    const source = page.page === null ? webText(page.url, hits) : pageText(page, texts);
    const citations = await judgedCitations(quoted, source, deps);
    judged.push({ ...page, quotation: worstOf(citations), citations });
  }
  return judged;
}

/** The pages with quotations, and those around them, by document. */
function pagesToRead(cited: readonly Cited[]): ReadonlyMap<string, ReadonlySet<number>> {
  const wanted = new Map<string, Set<number>>();
  for (const { document, page, quoted } of cited) {
    if (document === null || page === null || quoted.every((words) => words === null)) continue;
    const pages = wanted.get(document) ?? new Set();
    wanted.set(document, pages);
    for (const each of [page - 1, page, page + 1]) pages.add(each);
  }
  return wanted;
}

function worstOf(citations: readonly JudgedCitation[]): QuotationVerdict | null {
  const worstFirst = ['missing', 'near', 'exact'] as const;
  return worstFirst.find((verdict) => citations.some(({ quotation }) => quotation === verdict)) ?? null;
}

function citedIn(draft: string, hits: readonly ToolHit[]): readonly Cited[] {
  const titles = new Map(hits.flatMap((hit) => ('url' in hit ? [[hit.url, hit.title] as const] : [])));
  const cited = new Map<string, Cited>();
  for (const { source, quoted } of citationsIn(draft, new Set(titles.keys()))) {
    const key = 'url' in source ? source.url : `${source.document.slice(0, MARK_CHARS).toLowerCase()}:${source.page}`;
    const page = cited.get(key) ?? { ...pageOf(source, hits, titles), quoted: [] };
    page.quoted.push(quoted);
    cited.set(key, page);
  }
  return [...cited.values()];
}

function pageOf(
  source: CitedPlace['source'],
  hits: readonly ToolHit[],
  titles: ReadonlyMap<string, string>,
): Omit<Cited, 'quoted'> {
  if ('url' in source) {
    const { url } = source;
    return { mark: url, document: null, page: null, chunks: [], url, title: titles.get(url) ?? null };
  }
  const { mark, document, page } = source;
  const found = hits.flatMap((hit) =>
    'document' in hit && hit.page === page && hit.document.startsWith(document.toLowerCase()) ? [hit] : [],
  );
  const chunks = [...new Set(found.map(({ chunk }) => chunk))].sort((one, other) => one - other);
  return { mark, document: found[0]?.document ?? null, page, chunks, url: null, title: null };
}

/** What the search returned of a page, or null if older events lack it. */
function webText(url: string | null, hits: readonly ToolHit[]): SourceText | null {
  const found = hits.flatMap((hit) => ('url' in hit && hit.url === url && hit.text !== undefined ? [hit] : []));
  if (found.length === 0) return null;
  return { text: [...new Set(found.map(({ title, text }) => `${title}\n\n${text}`))].join('\n\n') };
}

/** The text of a document's page: empty if no tool has found the page, null if its text is not recorded. */
function pageText(
  { document, page }: Pick<CitedPage, 'document' | 'page'>,
  texts: ReadonlyMap<string, ReadonlyMap<number, string> | null>,
): SourceText | null {
  if (document === null || page === null) return { text: '' };
  const pages = texts.get(document);
  if (pages === undefined || pages === null) return null;
  return { text: pages.get(page) ?? '', before: pages.get(page - 1), after: pages.get(page + 1) };
}

/** UTF-16 units of sources that are searched between two pauses. */
const UNITS_AT_ONCE = 200_000;

async function judgedCitations(
  quoted: readonly (string | null)[],
  source: SourceText | null,
  { pause }: Pick<CitedPagesDeps, 'pause'>,
): Promise<readonly JudgedCitation[]> {
  if (source === null || quoted.every((words) => words === null)) {
    return quoted.map((words) => ({ quoted: words, quotation: null }));
  }
  const judge = await quotationJudge(source, pause);
  const citations: JudgedCitation[] = [];
  for (const [at, words] of quoted.entries()) {
    citations.push({ quoted: words, quotation: words === null ? null : judge(words) });
    if ((at + 1) % Math.ceil(UNITS_AT_ONCE / (source.text.length + 1)) === 0) await pause();
  }
  return citations;
}

async function foundIn(runId: string, events: AsyncIterable<RunEvent>): Promise<Found | null> {
  let run: RunState | null = null;
  const hits: ToolHit[] = [];
  for await (const recorded of events) {
    const event = upcast(recorded);
    run = foldNext(runId, run, event);
    if (event.type === 'ToolCalled') hits.push(...event.data.hits);
  }
  if (run === null) return null;
  const { request, progress, head } = run;
  return { parent: request.parent, headHash: head.hash, draft: finalDraftOf(run) ?? progress.shown.draft ?? '', hits };
}

/** Length of a document's id in a mark. */
const MARK_CHARS = 8;
