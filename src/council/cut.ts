/** Shortens a text at the end of a sentence. */
import { codePoints } from '../graph/limits.js';

/** Ends of sentences, in scripts with and without spaces after them, and line ends. */
const SENTENCE_END = /[.!?…](?=\s)|[。！？｡।؟]|\n/gu;

/**
 * The longest beginning of a text of at most so many code points, cut after its last sentence; after its last word if that
 * sentence ends in the first half. Well-formed if the text is.
 *
 * @param chars at least 1
 */
export function cutAtSentence(text: string, chars: number): string {
  if (text.length <= chars || (text.length <= 2 * chars && codePoints(text) <= chars)) return text;
  const fitting = [...text.slice(0, 2 * chars)].slice(0, chars).join('');
  const ends = [...fitting.matchAll(SENTENCE_END)].map(({ index, 0: end }) => index + end.length);
  const sentence = ends.at(-1) ?? 0;
  if (sentence > fitting.length / 2) return fitting.slice(0, sentence).trimEnd();
  const word = fitting.lastIndexOf(' ');
  return (word > fitting.length / 2 ? fitting.slice(0, word) : fitting).trimEnd();
}
