/** Where the words of a search are in a run, for a list. */
import { folded, indexTermsOf, wordsOf } from '../embeddings/words.js';
import type { RunSummary } from './run-summary.js';

/** A piece of a text: one of the words, or the text before, between or after them. */
export interface ExcerptPart {
  readonly text: string;
  readonly found: boolean;
}

export interface Excerpt {
  readonly of: 'input_topic' | 'final_draft';
  readonly parts: readonly ExcerptPart[];
}

/** Characters before and after the first found word. */
const BEFORE = 60;
const AFTER = 140;
/** Characters of a text in which words are searched, because a page of long drafts would take too long. */
const MAX_CHARS = 16_384;

const WORDS = /[\p{L}\p{N}\p{M}\p{Default_Ignorable_Code_Point}]+/gu;

/** The first place of each text with one of the words of `q`, or nothing where none is found. */
export function excerptsOf({ inputTopic, finalDraft }: RunSummary, q: string): readonly Excerpt[] {
  const isWanted = wordTest(q);
  const texts = [
    ['input_topic', inputTopic],
    ['final_draft', finalDraft ?? ''],
  ] as const;
  return texts.flatMap(([of, text]) => {
    const parts = partsOf(text.slice(0, MAX_CHARS), isWanted);
    return parts.length === 0 ? [] : [{ of, parts }];
  });
}

/** Whether a word of a text is one of the words of `q`, as the search for runs compares them. */
function wordTest(q: string): (word: string) => boolean {
  const pieces = folded(q).split(/\s+/u);
  const beginnings = pieces.filter((piece) => piece.endsWith('*')).flatMap((piece) => wordsOf(piece).at(-1) ?? []);
  const wanted = new Set(pieces.flatMap((piece) => wordsOf(piece)));
  return (word) => {
    const terms = [...indexTermsOf(word)];
    return terms.some((term) => wanted.has(term) || beginnings.some((each) => term.startsWith(each)));
  };
}

function partsOf(text: string, isWanted: (word: string) => boolean): readonly ExcerptPart[] {
  const parts: ExcerptPart[] = [];
  let [from, to] = [0, 0];
  for (const { 0: word, index } of text.matchAll(WORDS)) {
    if (to > 0 && index > to) break;
    if (!isWanted(word)) continue;
    if (to === 0) [from, to] = [Math.max(0, index - BEFORE), index + AFTER];
    if (index > from) parts.push({ text: shown(text.slice(from, index)), found: false });
    parts.push({ text: word, found: true });
    from = index + word.length;
  }
  if (to > from) parts.push({ text: shown(text.slice(from, to)), found: false });
  return parts.filter((part) => part.text !== '');
}

/** In one line, without half a character at an end. */
function shown(text: string): string {
  return text.replace(/\s+/gu, ' ').replace(/^[\udc00-\udfff]|[\ud800-\udbff]$/g, '');
}
