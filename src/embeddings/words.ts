/** The words of a text, as the full-text ranking and the offline embedding count them. Pure and deterministic. */

/** Most UTF-16 units of a word: longer runs are cut. */
const LONGEST_WORD = 40;

/**
 * Scripts written without spaces, and Korean, whose words have many endings: they are indexed as overlapping pairs of
 * characters, as Lucene's CJKAnalyzer does. SQLite's trigrams would miss the many words of two characters, and triple
 * the index of every other script.
 */
const PAIRED = ['Han', 'Hiragana', 'Katakana', 'Hangul', 'Thai', 'Lao', 'Khmer', 'Myanmar']
  .map((script) => `\\p{scx=${script}}`)
  .join('');

const RUNS = new RegExp(
  `(?<paired>(?:(?=[\\p{L}\\p{N}\\p{M}])[${PAIRED}])+)|(?:(?![${PAIRED}])[\\p{L}\\p{N}\\p{M}])+`,
  'gu',
);

/** Accents and the like; not the vowel signs of other scripts, which are letters to their readers. */
const DIACRITICS = /[\u0300-\u036f]/g;

/**
 * Words in their order, lower case, compatibility forms and accents folded away (`Ｆ` and `é` are `f` and `e`): runs of
 * letters, digits and marks. They hold nothing else: no space, quote, NUL or operator of a query language.
 */
export function wordsOf(text: string): readonly string[] {
  const words: string[] = [];
  for (const { 0: run, groups } of folded(text).matchAll(RUNS)) {
    if (groups?.['paired'] === undefined) words.push(run.slice(0, LONGEST_WORD).toWellFormed());
    else pushPairs(words, run);
  }
  return words;
}

function folded(text: string): string {
  return text.toLowerCase().normalize('NFKD').replace(DIACRITICS, '').normalize('NFC');
}

function pushPairs(words: string[], run: string): void {
  const characters = Array.from(run);
  if (characters.length === 1) words.push(run);
  for (let at = 1; at < characters.length; at += 1) words.push(`${characters[at - 1]}${characters[at]}`);
}
