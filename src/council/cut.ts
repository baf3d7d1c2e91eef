/** Shortens a text at the end of a sentence. */
import { isLonger, jsonBytes } from '../graph/limits.js';

/** Ends of sentences, in scripts with and without spaces after them, and line ends. */
const SENTENCE_END = /[.!?…](?=\s)|[。！？｡।؟]|\n/gu;

/**
 * The longest beginning of a text whose JSON form has at most so many bytes, cut after its last sentence; after its last
 * word if that sentence ends in the first half. Well-formed if the text is.
 *
 * @param bytes at least 16
 */
export function cutAtSentence(text: string, bytes: number): string {
  if (!isLonger(text, bytes)) return text;
  const fitting = longestFitting(text, bytes);
  const ends = [...fitting.matchAll(SENTENCE_END)].map(({ index, 0: end }) => index + end.length);
  const sentence = ends.at(-1) ?? 0;
  if (sentence > fitting.length / 2) return fitting.slice(0, sentence).trimEnd();
  const word = fitting.lastIndexOf(' ');
  return (word > fitting.length / 2 ? fitting.slice(0, word) : fitting).trimEnd();
}

/** By halving: the bytes of a beginning grow with its length. */
function longestFitting(text: string, bytes: number): string {
  let [fits, tooLong] = [0, text.length];
  while (tooLong - fits > 1) {
    const middle = Math.floor((fits + tooLong) / 2);
    if (jsonBytes(text.slice(0, middle)) <= bytes) fits = middle;
    else tooLong = middle;
  }
  const last = text.charCodeAt(fits - 1);
  const splitsPair = last >= 0xd800 && last <= 0xdbff;
  return text.slice(0, splitsPair ? fits - 1 : fits);
}
