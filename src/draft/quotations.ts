/** The quotations of a draft: the words in quotation marks before its citations, and what the service says of them. */
import { judgedIn } from './verdicts.js';
import type { DraftSource } from '../generated/schemas.js';
import type { DraftElement, DraftNode } from './draft-tree.js';

/** A citation in a draft. */
export interface CitedPlace {
  /** A page of a document by the mark as in the draft, or a page of the web by its address. */
  readonly source:
    | { readonly mark: string; readonly document: string; readonly page: number }
    | { readonly url: string };
  /** Where the citation ends, in UTF-16 units. */
  readonly end: number;
  /** The quoted words without their quotation marks, in one line; null if nothing is quoted. */
  readonly quoted: string | null;
}

/** Most citations of a draft. */
const MAX_CITATIONS = 500;

/**
 * The citations of a draft in order, at most 500, each with the last quotation of at least 4 words before it: in the same
 * sentence and after the citation before. Citations side by side share a quotation. Takes linear time.
 *
 * @param urls the addresses that tools have returned; others are no citations
 */
export function citationsIn(draft: string, urls: ReadonlySet<string>): readonly CitedPlace[] {
  const found: CitedPlace[] = [];
  let from = 0;
  for (const paragraph of draft.split(PARAGRAPH_END)) {
    found.push(...citedIn(paragraph, urls).map((each) => ({ ...each, end: from + each.end })));
    if (found.length >= MAX_CITATIONS) break;
    from += paragraph.length + 1;
  }
  return found.slice(0, MAX_CITATIONS);
}

/** A line end before an empty line, an item of a list, a heading or a row of a table. */
const PARAGRAPH_END = /\n(?=[^\S\n]*(?:\n|[-*+]\s|#{1,6}\s|\||\d{1,4}[.)]\s))/;

function citedIn(paragraph: string, urls: ReadonlySet<string>): readonly CitedPlace[] {
  const citations = [...markCitations(paragraph), ...webCitations(paragraph, urls)]
    .sort((one, other) => one.at - other.at)
    .slice(0, MAX_CITATIONS);
  const quotations = citations.length === 0 ? [] : quotationsIn(paragraph);
  const cited: CitedPlace[] = [];
  let previousEnd = 0;
  /** Number of quotations that begin before the citation. */
  let earlier = 0;
  for (const { source, start, at, end } of citations) {
    const last = cited.at(-1);
    const isBeside =
      last !== undefined && start - previousEnd <= MAX_BESIDE && BESIDE.test(paragraph.slice(previousEnd, start));
    while ((quotations[earlier]?.from ?? at) < at) earlier += 1;
    const quoted = isBeside
      ? last.quoted
      : quotedBefore(paragraph, quotations.slice(0, earlier), { from: previousEnd, start, at });
    cited.push({ source, end, quoted });
    previousEnd = end;
  }
  return cited;
}

interface FoundCitation extends Pick<CitedPlace, 'source' | 'end'> {
  /** Where it begins; a link begins before its address. */
  readonly start: number;
  /** Where its mark or its address begins. */
  readonly at: number;
}

/** What may stand between citations of one quotation, and its most units. */
const [BESIDE, MAX_BESIDE] = [/^[\s,;&()]*(?:and|und|et|y|e|en|och)?[\s,;&()]*$/, 40];

/** Brackets without brackets inside, so that matching is linear; hex digits of an id or a file name, and a page. */
const [BRACKETS, MARK] = [/\[([^[\]\n]{3,400})\]/g, /^([0-9a-f]{8,64}|[^:]{1,120}\.pdf):\s?(\d{1,6})$/i];

function markCitations(text: string): readonly FoundCitation[] {
  return [...text.matchAll(BRACKETS)].flatMap(({ 0: whole, 1: inside = '', index }) =>
    inside.split(/[,;]/).flatMap((part) => {
      const [, document, page] = MARK.exec(part.trim()) ?? [];
      if (document === undefined) return [];
      const source = { mark: `${document}:${Number(page)}`, document, page: Number(page) };
      return [{ source, start: index, at: index, end: index + whole.length }];
    }),
  );
}

function webCitations(text: string, urls: ReadonlySet<string>): readonly FoundCitation[] {
  if (urls.size === 0) return [];
  return [...text.matchAll(/https?:\/\/[^\s<>"]+/gi)].flatMap(({ 0: match, index }) => {
    const written = addressIn(match, urls);
    if (written === null) return [];
    const after = index + written.length;
    const link = /\[[^[\]]*\]\($/.exec(text.slice(Math.max(0, index - MAX_TITLE), index))?.[0].length ?? 0;
    const isBetween = text[index - 1] === '<' && text[after] === '>';
    const close = link > 0 ? text.indexOf(')', after) : isBetween ? after : -1;
    const source = { url: urls.has(written) ? written : `${written}/` };
    const start = index - (isBetween ? 1 : link);
    return [{ source, start, at: index, end: close === -1 ? after : close + 1 }];
  });
}

const MAX_TITLE = 300;

/** The address at the start of a text, which may end in punctuation of the sentence, or null if it is unknown. */
function addressIn(text: string, urls: ReadonlySet<string>): string | null {
  for (let written = text, cut = 0; cut < 12; cut += 1) {
    if (urls.has(written) || urls.has(`${written}/`)) return written;
    const shorter = written.replace(/(?:\)[^)]{0,40}|[^\p{L}\p{N}])$/u, '');
    if (shorter === written) return null;
    written = shorter;
  }
  return null;
}

interface FoundQuotation {
  /** Place of its opening mark. */
  readonly from: number;
  /** Place after its closing mark. */
  readonly to: number;
}

/** The quotations of a paragraph in order. */
function quotationsIn(text: string): readonly FoundQuotation[] {
  return [...text.matchAll(QUOTED)].map(({ 0: whole, index }) => ({ from: index, to: index + whole.length }));
}

/**
 * Quotations by their marks. Each kind excludes its own marks inside, so that matching is linear. Marks that both open and
 * close stand beside no letter outside; an apostrophe is before a letter.
 */
const QUOTED = new RegExp(
  [
    ...[
      '(?<![\\p{L}\\p{N}])"(?=\\S)[^"]+(?<=\\S)"(?![\\p{L}\\p{N}])',
      '“[^“”]+”',
      '„[^„“”]+[“”]',
      '«[^«»]+»',
      '‹[^‹›]+›',
    ],
    ...['(?<![^\\s(\\[—–-])”[^“”]+”', '(?<![^\\s(\\[—–-])»[^«»]+[«»]', '(?<![^\\s(\\[—–-])›[^‹›]+‹'],
    // Straight ones hold no other straight marks: between them may be what apostrophes of plurals and years only seem to quote.
    `(?<![\\p{L}\\p{N}])'(?=\\S)(?:[^'"]|(?<=\\p{L})'(?=\\p{L}))+(?<=\\S)'(?![\\p{L}\\p{N}])`,
    ...['‚[^‚‘]+‘', '(?<![\\p{L}\\p{N}])‘(?:[^‘’]|’(?=\\p{L}))+’', '「[^「」]+」', '『[^『』]+』'],
  ].join('|'),
  'gu',
);

/** The words of the last of some quotations before a citation, or null if there is none in its sentence. */
function quotedBefore(
  text: string,
  quotations: readonly FoundQuotation[],
  { from, start, at }: { readonly from: number; readonly start: number; readonly at: number },
): string | null {
  for (let last = quotations.length - 1; last >= 0; last -= 1) {
    const quotation = quotations[last];
    if (quotation === undefined || quotation.to <= from) return null;
    const isOpen = quotation.to > at;
    const words = inOneLine(text.slice(Math.max(from, quotation.from + 1), isOpen ? at : quotation.to - 1));
    if (words.length > MAX_QUOTED || wordsIn(words) < MIN_WORDS) continue;
    return !isOpen && SENTENCE_END.test(text.slice(quotation.to - 1, Math.max(start, quotation.to))) ? null : words;
  }
  return null;
}

/** After a word of more letters than most abbreviations have. Before a capital, or in scripts without capitals. */
const SENTENCE_END = /(?:(?<=\p{L}{4}|[\p{N}\p{Pe}\p{Pf}"])[.!?][\p{Pe}\p{Pf}"']*\s+[\p{Ps}\p{Pi}"']*\p{Lu}|[。！？])/u;

/** A text without line ends and the signs of quoted lines in Markdown. */
function inOneLine(text: string): string {
  return text
    .replace(/\n(?:[^\S\n]*>)+/g, ' ')
    .replace(/\s+/g, ' ')
    .trim();
}

/** Least words and most UTF-16 units of a quotation. */
const [MIN_WORDS, MAX_QUOTED] = [4, 5000];

/** In scripts without spaces, two characters count as a word. */
function wordsIn(text: string): number {
  const unspaced = text.match(UNSPACED)?.length ?? 0;
  return (text.replace(UNSPACED, ' ').match(/[\p{L}\p{N}][\p{L}\p{M}\p{N}'’-]*/gu)?.length ?? 0) + unspaced / 2;
}

const UNSPACED =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}]/gu;

/** Stands behind a citation whose quotation is missing, until `withMissing`. A private character. */
const SIGN = '\uF8F1';

/** A draft with a sign behind each citation whose quotation its sources lack; `withMissing` shows it. */
export function withSigns(draft: string, sources: readonly DraftSource[]): string {
  const { missing } = judgedIn(sources);
  if (missing.size === 0) return draft;
  const plain = draft.replaceAll(SIGN, ' ');
  const urls = new Set(sources.flatMap(({ url }) => url ?? []));
  const ends = citationsIn(plain, urls).flatMap(({ quoted, end }) => (missing.has(quoted ?? '') ? [end] : []));
  const pieces = [0, ...new Set(ends)].map((from, at, all) => plain.slice(from, all[at + 1] ?? plain.length));
  return pieces.join(` ${SIGN}`);
}

/** A tree in which signs are elements. */
export function withMissing(tree: readonly DraftNode[]): readonly DraftNode[] {
  return tree.flatMap((node): readonly DraftNode[] => {
    if (typeof node !== 'string') return [{ ...node, children: withMissing(node.children) }];
    if (!node.includes(SIGN)) return [node];
    return node
      .split(SIGN)
      .flatMap((text, at) => (at === 0 ? [text] : [MISSING, text]))
      .filter((part) => part !== '');
  });
}

const MISSING: DraftElement = {
  tag: 'mark',
  children: ['[not found]'],
  title: 'This quotation was not found in its source',
};
