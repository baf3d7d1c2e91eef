/** Reads a reviewer's ranking. It decides which answers stay, so an incomplete or ambiguous one is not used. */
import { MAX_FEEDBACK_CHARS } from '../../graph/limits.js';
import { cutAtSentence } from '../cut.js';
import { answerWith, fieldIn, textOf } from '../json-answer.js';
import { letterIn, namesOfResponses } from './letters.js';

/** A usable answer of a reviewer. */
export interface Ranking {
  /** The letters shown, best first. */
  readonly ranking: readonly string[];
  /** In well-formed Unicode, cut at a sentence to the length of a feedback. */
  readonly comment: string;
}

/**
 * Reads the object with a `ranking` in an answer (`answerWith`): a list, or a text such as `B > A > C`. It holds each
 * shown letter exactly once, as a letter or as "Response B". A missing comment is empty. Null if
 * there is none or it is unusable.
 */
export function readRanking(answer: string, letters: readonly string[]): Ranking | null {
  const object = answerWith(answer, ['ranking'], ['comment']);
  if (object === null) return null;
  const names = namesOfResponses(fieldIn(object, 'ranking'));
  const ranking = names.flatMap((each) => letterIn(each, letters) ?? []);
  const comment = textOf(fieldIn(object, 'comment'));
  const isWhole = names.length === letters.length && new Set(ranking).size === letters.length;
  return isWhole && comment !== null ? { ranking, comment: cutAtSentence(comment, MAX_FEEDBACK_CHARS) } : null;
}
