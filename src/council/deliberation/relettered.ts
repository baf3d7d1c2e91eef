/** A judge's analysis in the letters of another reader, because each reader sees the answers in an order of its own. */
import type { Analysis } from '../../generated/schemas.js';
import { enumerated, indexOfLetter, letterAt } from './anonymity.js';

/** What stands in place of an answer that the reader does not see. */
const ANOTHER = 'another response';

/**
 * An analysis with the letters of another reader: in its fields, and in its texts where they name "Response B" or "Responses
 * A, C and D" or "Responses A–C". An answer that the reader does not see becomes "another response".
 *
 * @param orders members in the order shown to the judge (`from`) and to the reader (`to`)
 */
export function relettered(
  analysis: Analysis,
  { from, to }: { readonly from: readonly string[]; readonly to: readonly string[] },
): Analysis {
  const letterOf = (letter: string): string => {
    const index = to.indexOf(from[indexOfLetter(letter)] ?? '');
    return index === -1 ? ANOTHER : letterAt(index);
  };
  const lettersOf = (letters: readonly string[]): string[] => [...new Set(letters.map(letterOf))].toSorted();
  const named = responsesNamed(from.length);
  const inText = (text: string): string =>
    text.replace(named, (_, noun: string, letters: string) => {
      const seen = lettersOf(letters.replace(RANGE, inFull).match(/[A-Z]\b/g) ?? []);
      return phrase(noun, seen, /\bor\b/.test(letters) ? 'or' : 'and');
    });
  return {
    consensus: analysis.consensus.map(inText),
    contradictions: analysis.contradictions.map(({ topic, stances }) => ({
      topic: inText(topic),
      stances: stances.map(({ response, stance }) => ({ response: letterOf(response), stance: inText(stance) })),
    })),
    partial_coverage: analysis.partial_coverage.map(({ responses, point }) => ({
      responses: lettersOf(responses),
      point: inText(point),
    })),
    unique_insights: analysis.unique_insights.map(({ response, insight }) => ({
      response: letterOf(response),
      insight: inText(insight),
    })),
    blind_spots: analysis.blind_spots.map(inText),
  };
}

/**
 * A text that names no response by its letter: for readers who see the answers in another order than its author did.
 *
 * @param responses how many there are
 */
export function withoutLetters(text: string, responses: number): string {
  return text.replace(responsesNamed(responses), (_, noun: string, letters: string) => {
    return letters.length === 1 && /e$/i.test(noun) ? 'one response' : 'some responses';
  });
}

/** Matches the word "response" and the letters after it. */
function responsesNamed(letters: number): RegExp {
  const letter = `[A-${letterAt(Math.max(letters, 1) - 1)}]\\b`;
  return new RegExp(`\\b([Rr]esponses?) (${letter}(?:(?:, and |, or |, | and | or | & |/|-|–| to )${letter})*)`, 'g');
}

/** A range of letters, such as `A–C`. */
const RANGE = /([A-Z])(?:-|–| to )([A-Z])/g;

/** All letters of a range, with commas between them. */
function inFull(_range: string, first: string, last: string): string {
  const begin = indexOfLetter(first);
  return Array.from({ length: Math.max(0, indexOfLetter(last) - begin) + 1 }, (_, index) =>
    letterAt(begin + index),
  ).join();
}

/** "Response B", "Responses A and C", "Response A and another response", "another response". */
function phrase(noun: string, letters: readonly string[], conjunction: string): string {
  const seen = letters.filter((letter) => letter !== ANOTHER);
  if (seen.length === 0) return ANOTHER;
  return `${seen.length > 1 ? noun : noun.replace(/s$/, '')} ${enumerated(letters, conjunction)}`;
}
