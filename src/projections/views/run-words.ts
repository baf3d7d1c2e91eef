/** What a search for words asks of the full text: words alone, so that nothing of it is syntax of a query. */
import { wordsOf } from '../../embeddings/words.js';

/** Fewest characters before a `*` that count: too many words begin with less. */
const MIN_BEGINNING = 3;

/** The query of FTS5 for texts with all of the words, of which one with `*` behind is a beginning; null: it holds no word. */
export function matchOf(text: string): string | null {
  const terms = text.split(/\s+/u).flatMap((piece) => {
    const words = wordsOf(piece);
    const last = words.at(-1);
    const isBeginning = piece.endsWith('*') && last !== undefined && last.length >= MIN_BEGINNING;
    return words.map((word) => (isBeginning && word === last ? `"${word}"*` : `"${word}"`));
  });
  return terms.length === 0 ? null : [...new Set(terms)].join(' AND ');
}
