/** Reads a reviewer's ranking. It decides which answers stay, so an incomplete or ambiguous one is not used. */
import { MAX_FEEDBACK_CHARS } from '../../graph/limits.js';
import { isList } from '../../system/untrusted.js';
import { cutAtSentence } from '../cut.js';
import { answerWith, fieldIn, textOf } from '../json-answer.js';
import { letterIn } from './letters.js';

/** A usable answer of a reviewer. */
export interface Ranking {
  /** The letters shown, best first. */
  readonly ranking: readonly string[];
  /** In well-formed Unicode, cut at a sentence to the length of a feedback. */
  readonly comment: string;
}

/**
 * Reads the object with a `ranking` in an answer (contract, section 6.4; `answerWith`), or null if there is none or it is
 * unusable: the ranking is a list of texts, and holds each shown letter exactly once, as `B` or as "Response B". A missing
 * comment is empty, and other fields are ignored.
 */
export function readRanking(answer: string, letters: readonly string[]): Ranking | null {
  const object = answerWith(answer, ['ranking'], ['comment']);
  if (object === null) return null;
  const names = fieldIn(object, 'ranking');
  if (!isList(names)) return null;
  const ranking = names.flatMap((each) => letterIn(each, letters) ?? []);
  const comment = textOf(fieldIn(object, 'comment'));
  const isWhole = names.length === letters.length && new Set(ranking).size === letters.length;
  return isWhole && comment !== null ? { ranking, comment: cutAtSentence(comment, MAX_FEEDBACK_CHARS) } : null;
}
