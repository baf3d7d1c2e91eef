/** Reads the letter of a response in a model's JSON. */

/** The letter in a text such as `B`, `1. b` or `Response B`, or null if it names none of those shown. */
export function letterIn(given: unknown, letters: readonly string[]): string | null {
  if (typeof given !== 'string') return null;
  const words = given.replace(/\P{L}+/gu, ' ').trim();
  const letter = /^(?:(?:response|answer) )?([a-z])$/i.exec(words)?.[1]?.toUpperCase();
  return letters.find((each) => each === letter) ?? null;
}
