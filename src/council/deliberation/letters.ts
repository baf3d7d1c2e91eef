/** Reads the letters of responses in a model's JSON. */
import { isRecord, listOf } from '../../system/untrusted.js';
import { fieldIn } from '../json-answer.js';

/** The letter in a text such as `B`, `1. b` or `Response B`, or null if it names none of those shown. */
export function letterIn(given: unknown, letters: readonly string[]): string | null {
  if (typeof given !== 'string') return null;
  const words = given.replace(/\P{L}+/gu, ' ').trim();
  const letter = /^(?:(?:response|answer) )?([a-z])$/i.exec(words)?.[1]?.toUpperCase();
  return letters.find((each) => each === letter) ?? null;
}

/** The names in a list, or in a text with signs or "and" between them. The name in an object is its `response`. */
export function namesOfResponses(given: unknown): readonly unknown[] {
  const names = typeof given === 'string' ? given.split(/[>,&\n]|\band\b/i) : listOf(given);
  return names.map((each) => (isRecord(each) ? fieldIn(each, 'response') : each));
}
