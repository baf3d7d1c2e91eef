/** Signs that the first parser's text is not what the pages show, so that the second one is asked. */
import { hasRightToLeft } from './glyph-text.js';

/** Letters a word may have before it is taken for several without their spaces. */
const LONGEST_WORD = 20;
/** Shares of a text's characters that may be wrong before it is in doubt: of TeX's files pdf2json glues 3 % and more. */
const MOST_GLUED = 0.005;
const MOST_GARBAGE = 0.01;
const MOST_GUESSED = 0.05;

/** Letters of alphabets written with spaces. Where German or Finnish words are as long, the second parser is asked in vain. */
const LONG_WORD = new RegExp(
  `(?:(?!\\p{Script=Han}|\\p{Script=Hiragana}|\\p{Script=Katakana}|\\p{Script=Thai})\\p{L}){${LONGEST_WORD + 1},}`,
  'gu',
);
/** Characters for private use, and the sign for one that is unknown. */
const GARBAGE = /[\p{Co}\uFFFD]/gu;

const HANGUL = /\p{Script=Hangul}/gu;
/** What is left of U+1D400 to U+1D7A3 without its first digit. */
const HANGUL_OF_FORMULAS = /[\uD400-\uD7A3]/gu;

/**
 * Why the texts of these pages should not be relied on, a word each; none when they may.
 *
 * @param guessed share of the letters, 0 to 1, whose place is guessed
 */
export function doubtsAbout(texts: readonly string[], guessed: number): readonly string[] {
  const all = texts.join('\n');
  const letters = Math.max(1, all.length);
  const doubts: readonly (readonly [string, boolean])[] = [
    ['empty', texts.length === 0 || texts.some((text) => text === '')],
    ['guessed', guessed > MOST_GUESSED],
    ['glued', lengthOf(all.match(LONG_WORD)) > letters * MOST_GLUED],
    ['garbage', lengthOf(all.match(GARBAGE)) > letters * MOST_GARBAGE],
    // It cuts characters beyond 16 bits: italic letters of formulas come out as Hangul.
    ['cut', isAStrayScript(all.match(HANGUL_OF_FORMULAS)?.length ?? 0, all)],
    // It hands their letters out as they are drawn, from the left.
    ['right-to-left', hasRightToLeft(all)],
  ];
  return doubts.filter(([, isSo]) => isSo).map(([name]) => name);
}

/** Korean texts have their letters all over them, and not in this range alone. */
function isAStrayScript(some: number, all: string): boolean {
  return some > 0 && some * 2 > (all.match(HANGUL)?.length ?? 0);
}

function lengthOf(found: readonly string[] | null): number {
  return (found ?? []).reduce((sum, { length }) => sum + length, 0);
}
