/** Passages by their words: BM25 of SQLite's FTS5, inside the database of the passages. */
import type { DatabaseSyncInstance } from '@photostructure/sqlite';
import type { Scored } from './top-k.js';
import { numberOf } from './rows.js';
import { wordsOf } from '../embeddings/words.js';

/**
 * The words are cut by words.ts and come with spaces between them. FTS5's own `ascii` tokenizer keeps them as they are;
 * `unicode61` knows no script without spaces and an old Unicode. The text itself is kept elsewhere.
 */
export const FULL_TEXT_SCHEMA = `
  CREATE VIRTUAL TABLE words USING fts5(text, content = '', tokenize = 'ascii');
  CREATE VIRTUAL TABLE word_counts USING fts5vocab(words, row);
`;

/** Different words of a query that are looked at, the first ones. */
const MAX_WORDS = 32;
/**
 * Passages that the words of a query may be found in, all in all. Words are taken from the rarest on while they fit, so
 * that what is in every tenth passage of 100,000 and tells little is not ranked at the price of all of them.
 */
const MAX_FINDS = 10_000;
/** Counts that are remembered, until the next change. */
const MAX_COUNTS = 10_000;

export interface FullText {
  add(key: number, text: string): void;
  /** `text` must be the one that was added: its words are taken out of the counts. */
  remove(key: number, text: string): void;
  /** The best passages that hold any of the words, best first, none with a key after `last`. */
  nearest(query: string, limit: number, last?: number): readonly Scored[];
}

export function fullText(database: DatabaseSyncInstance): FullText {
  const add = database.prepare('INSERT INTO words (rowid, text) VALUES (?, ?)');
  const remove = database.prepare(`INSERT INTO words (words, rowid, text) VALUES ('delete', ?, ?)`);
  const count = database.prepare('SELECT doc FROM word_counts WHERE term = ?');
  // Its rank is the lower the better.
  const find = database.prepare(
    'SELECT rowid AS key, -rank AS score FROM words WHERE words MATCH ? AND rowid <= ? ORDER BY rank, rowid LIMIT ?',
  );
  const counts = new Map<string, number>();

  const countOf = (word: string): number => {
    const known = counts.get(word);
    if (known !== undefined) return known;
    const found = numberOf(count.get(word), 'doc') ?? 0;
    if (counts.size < MAX_COUNTS) counts.set(word, found);
    return found;
  };
  const telling = (query: string): readonly string[] => {
    const words = [...new Set(wordsOf(query))].slice(0, MAX_WORDS).map((word) => ({ word, finds: countOf(word) }));
    const rarest = words.filter(({ finds }) => finds > 0).sort((one, other) => one.finds - other.finds);
    let finds = 0;
    return rarest.filter((each) => (finds += each.finds) <= MAX_FINDS).map(({ word }) => word);
  };
  return {
    add(key, text) {
      counts.clear();
      add.run(key, wordsOf(text).join(' '));
    },
    remove(key, text) {
      counts.clear();
      remove.run(key, wordsOf(text).join(' '));
    },
    nearest(query, limit, last = Number.MAX_SAFE_INTEGER) {
      const words = telling(query);
      if (words.length === 0) return [];
      // A word holds no quote: nothing of the query is read as FTS5's query language.
      const match = words.map((word) => `"${word}"`).join(' OR ');
      return find.all(match, last, limit).flatMap((row) => {
        const [key, score] = [numberOf(row, 'key'), numberOf(row, 'score')];
        return key === null || score === null ? [] : [{ key, score }];
      });
    },
  };
}
