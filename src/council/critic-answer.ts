/** Reads a critic's answer. A score decides the route of a run, so an ambiguous answer is not used. */
import { answerWith, fieldIn, textOf } from './json-answer.js';

/** A usable answer of a critic. */
export interface Critique {
  /** Finite, from 0 to 10. */
  readonly score: number;
  /** In well-formed Unicode. */
  readonly feedback: string;
}

/**
 * Reads the object with a `score` in an answer (`answerWith`). The score is a number from 0 to 10 or its text, the feedback a
 * text or a list of lines, empty if missing (contract, section 5). Null if there is none or it is unusable: two scores are
 * ambiguous.
 */
export function readCritique(answer: string): Critique | null {
  const object = answerWith(answer, ['score'], ['feedback']);
  if (object === null) return null;
  const score = scoreOf(fieldIn(object, 'score'));
  const feedback = textOf(fieldIn(object, 'feedback'));
  return score === null || feedback === null ? null : { score, feedback };
}

function scoreOf(given: unknown): number | null {
  const score = typeof given === 'string' ? numberIn(given) : given;
  // JSON writes minus zero as zero, and the adopted state must equal the recorded one.
  return typeof score === 'number' && score >= 0 && score <= 10 ? Math.abs(score) : null;
}

/** The number in a text: as JSON writes it, with a decimal comma, out of ten (`8/10`), or in percent. */
function numberIn(text: string): number | null {
  const [, digits, unit = ''] = NUMBER.exec(text) ?? [];
  if (digits === undefined) return null;
  const number = Number(digits.replace(',', '.'));
  return unit === '%' ? number / 10 : number;
}

/** A number as JSON writes it. */
const NUMBER = /^\s*(-?\d+(?:[.,]\d+)?(?:[eE][+-]?\d+)?)\s*(%|\/\s*10)?\s*$/;
