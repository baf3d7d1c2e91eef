/** Looks up the quoted words of a draft in the text of their source. Pure; no model is called. */
import type { QuotationVerdict } from '../generated/schemas.js';

/** What a source gave. */
export interface SourceText {
  readonly text: string;
  /** The pages before and after it, onto which a quotation may run. Default: none. */
  readonly before?: string | undefined;
  readonly after?: string | undefined;
}

/**
 * Reads a source and returns a function that judges quotations by it: `exact` has the same text but for line ends, `near` the
 * same words but for case, spaces, hyphenation or punctuation; the sign of a number or of a formula is no punctuation. Words
 * are whole words of the source. The parts around an ellipsis follow in order. A quotation may run over the end of the page,
 * where running heads, page numbers, notes and figures are left out. Takes time in proportion to the source.
 *
 * @param pause lets other work run
 */
export async function quotationJudge(
  { text, before = '', after = '' }: SourceText,
  pause: () => Promise<void>,
): Promise<(quoted: string) => QuotationVerdict> {
  const ids = wordIds();
  const page = cleaned(text);
  const ends = [[page, cleaned(after)] as const, [cleaned(before), page] as const].filter((two) => !two.includes(''));
  const groups: { readonly hyphens: Hyphens; readonly places: readonly (() => Words)[] }[] = [];
  for (const hyphens of HYPHENS) {
    const whole = await wordsOf(page, hyphens, ids, pause);
    groups.push({ hyphens, places: [() => whole] });
    for (const [one, other] of ends) {
      groups.push({ hyphens, places: spreadsOf(one, other).map((each) => lazily(each, hyphens, ids)) });
    }
  }
  return (quoted) => {
    const parts = cleaned(quoted).split(ELLIPSIS);
    const wanted = { joined: wantedIn(parts, 'joined', ids), parting: wantedIn(parts, 'parting', ids) };
    if (wanted.joined.length === 0) return 'missing';
    for (const { hyphens, places } of groups) {
      for (const [at, words] of places.entries()) {
        // The first place of a group has all words of the others, but for one that the end of the page divides.
        if (at === 0 && countUnknown(wanted[hyphens], words()) > Math.min(1, places.length - 1)) break;
        const verdict = verdictOf(wanted[hyphens], words());
        if (verdict !== 'missing') return verdict;
      }
    }
    return 'missing';
  };
}

function wantedIn(parts: readonly string[], hyphens: Hyphens, ids: WordIds): readonly Words[] {
  return parts.map((part) => wordsAtOnce(part, hyphens, ids)).filter((words) => words.ids.length > 0);
}

function countUnknown(wanted: readonly Words[], { known }: Words): number {
  return wanted.reduce((count, part) => count + part.ids.filter((id) => !known.has(id)).length, 0);
}

/** A text, and where in it one page ends and the next begins, or null within a page. */
interface JoinedText {
  readonly text: string;
  readonly end: number | null;
}

/** Most UTF-16 units of each page where a quotation runs over its end. */
const END_UNITS = 1500;

/**
 * The end of a page and the beginning of the next, without more and more in between: up to 3 lines of either page (running
 * heads, page numbers), or up to 2 paragraphs of the first and 4 of the next (notes, figures).
 */
function spreadsOf(one: string, other: string): readonly JoinedText[] {
  const [last, first] = [one.slice(-END_UNITS).trimEnd(), other.slice(0, END_UNITS).trimStart()];
  const lines = [...last.matchAll(/\n+/g)].toReversed();
  const ends = [last.length, ...cuts(lines, 2).map(({ index }) => index)];
  const begins = [0, ...cuts([...first.matchAll(/\n+/g)], 4).map(({ 0: { length }, index }) => index + length)];
  return ends.flatMap((end) => begins.map((begin) => ({ text: `${last.slice(0, end)}\n${first.slice(begin)}`, end })));
}

/** The first 3 of some line ends, and the first ends of paragraphs. */
function cuts(lineEnds: readonly RegExpExecArray[], paragraphs: number): readonly RegExpExecArray[] {
  return [...new Set([...lineEnds.slice(0, 3), ...lineEnds.filter(([end]) => end.length > 1).slice(0, paragraphs)])];
}

/** The words of a text in order. */
interface Words extends JoinedText {
  readonly ids: readonly number[];
  /** Where each begins and ends in the text. */
  readonly from: readonly number[];
  readonly to: readonly number[];
  readonly known: ReadonlySet<number>;
}

/** Whether a hyphen joins the parts of a word everywhere, or only at the end of a line and parts two words elsewhere. */
type Hyphens = 'joined' | 'parting';
const HYPHENS: readonly Hyphens[] = ['joined', 'parting'];

function lazily({ text, end }: JoinedText, hyphens: Hyphens, ids: WordIds): () => Words {
  let words: Words | null = null;
  return () => (words ??= { ...wordsAtOnce(text, hyphens, ids), end });
}

/** Words between two pauses. */
const WORDS_AT_ONCE = 10_000;

async function wordsOf(text: string, hyphens: Hyphens, ids: WordIds, pause: () => Promise<void>): Promise<Words> {
  const reading = readWords(text, hyphens, ids);
  for (;;) {
    const { done, value } = reading.next();
    if (done === true) return value;
    await pause();
  }
}

function wordsAtOnce(text: string, hyphens: Hyphens, ids: WordIds): Words {
  const reading = readWords(text, hyphens, ids);
  for (;;) {
    const { done, value } = reading.next();
    if (done === true) return value;
  }
}

/** Yields after every so many words, and returns all. */
function* readWords(text: string, hyphens: Hyphens, idOf: WordIds): Generator<undefined, Words> {
  const [ids, from, to] = [[] as number[], [] as number[], [] as number[]];
  const known = new Set<number>();
  for (const { 0: found, index } of text.matchAll(WORDS[hyphens])) {
    const id = idOf(found);
    ids.push(id);
    known.add(id);
    from.push(index);
    to.push(index + found.length);
    if (ids.length % WORDS_AT_ONCE === 0) yield undefined;
  }
  return { text, end: null, ids, from, to, known };
}

/** The number of a word; words have one number if they are the same for `near`. */
type WordIds = (found: string) => number;

function wordIds(): WordIds {
  const [byText, byWord] = [new Map<string, number>(), new Map<string, number>()];
  return (found) => {
    const known = byText.get(found);
    if (known !== undefined) return known;
    const word = foldedWord(found);
    const id = byWord.get(word) ?? byWord.size;
    byWord.set(word, id);
    byText.set(found, id);
    return id;
  };
}

/** A word without what `near` leaves out. */
function foldedWord(found: string): string {
  if (/^[a-z]+$/.test(found) || /^\p{No}$/u.test(found)) return found;
  if (/[\p{Nd}\p{Pd}−≠!]/u.test(found) && !/\p{L}/u.test(found)) {
    return found
      .normalize('NFKC')
      .replace(/\s/g, '')
      .replace(/^[\p{Pd}−]/u, '-')
      .replace('!=', '≠');
  }
  return found
    .normalize('NFKC')
    .toLowerCase()
    .replace(/[^\p{L}\p{M}\p{S}]/gu, '');
}

/** A character of a script without spaces between words is a word. */
const UNSPACED =
  '\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}\\p{Script=Thai}\\p{Script=Lao}\\p{Script=Khmer}';
const LETTERS = `[^\\P{L}${UNSPACED}](?:[^\\P{L}${UNSPACED}]|\\p{M})*`;
/** With its sign, its currency and its percent sign. A hyphen after a letter or a digit is no sign. */
const NUMBER = '(?:(?<![\\p{L}\\p{M}\\p{N})\\]])[\\p{Pd}−])?(?:\\p{Sc}\\s?)?\\p{Nd}+(?:[.,:/]\\p{Nd}+)*(?:\\s?[%‰])?';
/** Between two numbers, or between a word and its number. */
const DASH = '(?:(?<=[\\p{L}\\p{M}])|(?<=\\p{N}\\s?))[\\p{Pd}−](?=\\s?\\p{N})';

function wordPattern(hyphen: string): RegExp {
  const word = `${LETTERS}(?:(?:['’ʼ]|${hyphen})${LETTERS})*`;
  return new RegExp(`${word}|${NUMBER}|${DASH}|[${UNSPACED}]\\p{M}*|!=|[\\p{Sm}\\p{So}\\p{Sc}\\p{No}\\p{Nl}]`, 'gu');
}

const WORDS: Readonly<Record<Hyphens, RegExp>> = {
  joined: wordPattern('[-‐‑]\\s*'),
  parting: wordPattern('[-‐‑][^\\S\\n]*\\n\\s*'),
};

/** A text without invisible characters. A soft hyphen does not divide a word. */
function cleaned(text: string): string {
  return text
    .slice(0, MAX_PAGE_UNITS)
    .normalize('NFC')
    .replace(/\u00AD\s*|\p{Cf}/gu, '');
}

/** Most UTF-16 units that are read of a source: a hundred times a page of small print. */
const MAX_PAGE_UNITS = 600_000;

const ELLIPSIS = /\[\s*(?:…|\.(?:\s?\.){1,3})\s*\]|\(\s*(?:…|\.(?:\s?\.){1,3})\s*\)|…|\.(?:\s?\.){2,3}/;

/** Finds each part at the first place after the part before. */
function verdictOf(parts: readonly Words[], words: Words): QuotationVerdict {
  let [start, at, isExact] = [-1, 0, true];
  for (const part of parts) {
    const [first, ...others] = placesOf(part.ids, words.ids, at);
    if (first === undefined) return 'missing';
    isExact &&= [first, ...others].some(
      (place) => textOf(words, place, part.ids.length) === textOf(part, 0, part.ids.length),
    );
    if (start === -1) start = words.from[first] ?? 0;
    at = first + part.ids.length;
  }
  const { end } = words;
  if (end !== null && !(start < end && (words.to[at - 1] ?? 0) > end)) return 'missing';
  return isExact ? 'exact' : 'near';
}

/** The text of some words, with single spaces and without the emphasis of Markdown. */
function textOf({ text, from, to }: Words, at: number, count: number): string {
  return text
    .slice(from[at], to[at + count - 1])
    .replace(/[*_`\\]/g, '')
    .replace(/\s+/g, ' ');
}

/** Most places of a part whose text is compared. */
const MAX_PLACES = 8;

/** The first places of some words, from a place on, in linear time (Knuth, Morris and Pratt). */
function placesOf(wanted: readonly number[], words: readonly number[], from: number): readonly number[] {
  // Of each place in `wanted`, the length of the longest beginning of `wanted` that ends there.
  const borders = [0];
  const longer = (length: number, word: number | undefined): number => {
    let known = length;
    while (known > 0 && word !== wanted[known]) known = borders[known - 1] ?? 0;
    return word === wanted[known] ? known + 1 : known;
  };
  for (const word of wanted.slice(1)) borders.push(longer(borders.at(-1) ?? 0, word));
  const found: number[] = [];
  for (let at = from, length = 0; at < words.length && found.length < MAX_PLACES; at += 1) {
    length = longer(length, words[at]);
    if (length < wanted.length) continue;
    found.push(at + 1 - length);
    length = borders[length - 1] ?? 0;
  }
  return found;
}
