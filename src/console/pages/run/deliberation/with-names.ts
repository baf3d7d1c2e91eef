/** A letter after "Response", or several letters after "Responses". */
const NAMED = /\b[Rr]esponses? ([A-Z]\b(?:(?:, and |, or |, | and | or | & |\/)[A-Z]\b)*)/g;

/**
 * A text of a judge or reviewer with the labels of members in place of "Response B" or "Responses A and C". A phrase with an
 * unknown letter stays.
 *
 * @param labels by the letters that the writer of the text was shown
 */
export function withNames(text: string, labels: ReadonlyMap<string, string>): string {
  return text.replace(NAMED, (phrase, letters: string) => {
    const isKnown = (letters.match(/[A-Z]\b/g) ?? []).every((letter) => labels.has(letter));
    return isKnown ? letters.replace(/\b[A-Z]\b/g, (letter) => labels.get(letter) ?? letter) : phrase;
  });
}
