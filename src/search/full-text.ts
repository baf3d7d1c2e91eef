/** Full-text search of chunks: BM25 of SQLite's FTS5, in the database of the chunks. */
import type { DatabaseSyncInstance } from '@photostructure/sqlite';
import type { Scored } from './top-k.js';
import { numberOf } from './rows.js';
import { wordsOf } from '../embeddings/words.js';

/**
 * embeddings/words.ts splits texts into words, joined by spaces here. FTS5's `ascii` tokenizer keeps them unchanged;
 * `unicode61` supports no scripts without spaces and only an old Unicode. The text itself is stored elsewhere.
 */
export const FULL_TEXT_SCHEMA = `
  CREATE VIRTUAL TABLE words USING fts5(text, content = '', tokenize = 'ascii');
  CREATE VIRTUAL TABLE word_counts USING fts5vocab(words, row);
`;

/** Most distinct words of a query that count, from the first. */
const MAX_WORDS = 32;
/**
 * Most matches of all words of a query together. Words are taken from the rarest on while they fit, so that a word in
 * every tenth of 100,000 chunks, which is not distinctive, does not make ranking slow.
 */
const MAX_FINDS = 10_000;
/** Word counts cached until the next change. */
const MAX_COUNTS = 10_000;

export interface FullText {
  add(key: number, text: string): void;
  /** `text` must be the one that was added: FTS5 needs it to remove the words. */
  remove(key: number, text: string): void;
  /** The best chunks with any of the words, best first, none with a key after `last`. */
  nearest(query: string, limit: number, last?: number): readonly Scored[];
}

export function fullText(database: DatabaseSyncInstance): FullText {
  const add = database.prepare('INSERT INTO words (rowid, text) VALUES (?, ?)');
  const remove = database.prepare(`INSERT INTO words (words, rowid, text) VALUES ('delete', ?, ?)`);
  const count = database.prepare('SELECT doc FROM word_counts WHERE term = ?');
  // FTS5's rank: lower is better.
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
  const distinctive = (query: string): readonly string[] => {
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
      const words = distinctive(query);
      if (words.length === 0) return [];
      // Words hold no quotes, so nothing of the query is interpreted as FTS5 syntax.
      const match = words.map((word) => `"${word}"`).join(' OR ');
      return find.all(match, last, limit).flatMap((row) => {
        const [key, score] = [numberOf(row, 'key'), numberOf(row, 'score')];
        return key === null || score === null ? [] : [{ key, score }];
      });
    },
  };
}
