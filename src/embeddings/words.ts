/** The words of a text, as the full-text searches and the offline embedding count them. Pure and deterministic. */

/** Most UTF-16 units of a word: longer runs are cut. */
const LONGEST_WORD = 40;

/**
 * Scripts without spaces, and Korean, whose words have many endings. They are indexed as overlapping pairs of characters,
 * as by Lucene's CJKAnalyzer. SQLite's trigrams would miss words of two characters and triple the index of other scripts.
 */
const PAIRED = ['Han', 'Hiragana', 'Katakana', 'Hangul', 'Thai', 'Lao', 'Khmer', 'Myanmar']
  .map((script) => `\\p{scx=${script}}`)
  .join('');

const RUNS = new RegExp(
  `(?<paired>(?:(?=[\\p{L}\\p{N}\\p{M}])[${PAIRED}])+)|(?:(?![${PAIRED}])[\\p{L}\\p{N}\\p{M}])+`,
  'gu',
);

/**
 * Characters that a search ignores: invisible ones (soft hyphen, zero-width space and joiners, direction marks), tatweel,
 * and the marks of accents, niqqud and tashkil. The voicing marks of kana and the vowel signs of Indic and Thai scripts
 * count, because they make another letter.
 */
const REMOVED =
  /\p{Default_Ignorable_Code_Point}|\u0640|(?![\u3099\u309a])(?=\p{M})[\p{sc=Inherited}\p{sc=Hebrew}\p{sc=Arabic}\p{sc=Syriac}]/gu;

/** Lower-case letters that Unicode does not decompose, and what readers type for them. */
const LETTERS: Readonly<Record<string, string>> = {
  ß: 'ss',
  ς: 'σ',
  ı: 'i',
  æ: 'ae',
  œ: 'oe',
  þ: 'th',
  ø: 'o',
  ł: 'l',
  đ: 'd',
  ð: 'd',
  ħ: 'h',
  ŧ: 't',
};
const REPLACED = new RegExp(`[${Object.keys(LETTERS).join('')}]`, 'gu');

const ASCII = /^[\0-\x7f]*$/;

/**
 * The text without the differences that a search ignores: case (`ẞ` is `ss`, final sigma is sigma), accents, niqqud,
 * tashkil, soft hyphens and zero-width characters, compatibility forms (`Ｆ` is `f`) and composition.
 */
export function folded(text: string): string {
  if (ASCII.test(text)) return text.toLowerCase();
  return text
    .normalize('NFKD')
    .replace(REMOVED, '')
    .toLowerCase()
    .replace(REPLACED, (letter) => LETTERS[letter] ?? letter)
    .normalize('NFC');
}

/** Words of the folded text in order: runs of letters, digits and marks. They contain no operator of FTS5. */
export function wordsOf(text: string): readonly string[] {
  return termsOf(text, { hasCharacters: false });
}

/** The distinct words of a text, and also each character of the scripts whose words are pairs of characters. */
export function indexTermsOf(text: string): ReadonlySet<string> {
  return new Set(termsOf(text, { hasCharacters: true }));
}

function termsOf(text: string, { hasCharacters }: { readonly hasCharacters: boolean }): readonly string[] {
  const terms: string[] = [];
  for (const { 0: run, groups } of folded(text).matchAll(RUNS)) {
    if (groups?.['paired'] === undefined) {
      terms.push(run.slice(0, LONGEST_WORD).toWellFormed());
      continue;
    }
    const characters = Array.from(run);
    if (hasCharacters || characters.length === 1) for (const each of characters) terms.push(each);
    for (let at = 1; at < characters.length; at += 1) terms.push(`${characters[at - 1]}${characters[at]}`);
  }
  return terms;
}
