/** Reads a critic's answer. A score decides where a run goes, so a doubtful one is no score. */
import type { CriticAnswer } from '../generated/schemas.js';

/** A usable answer of a critic: a finite score from 0 to 10, feedback in well-formed Unicode. */
export type Critique = Readonly<Pick<CriticAnswer, 'score' | 'feedback'>>;

/**
 * Reads an answer that is one JSON object with a number `score` from 0 to 10 and a string `feedback`; null for any
 * other text. Other properties are ignored. Strict on purpose: in prose or in a fenced block a score may be a quotation,
 * `"9/10"` is a text, and of two scores nobody knows which was meant. The caller asks once more instead.
 */
export function readCritique(text: string): Critique | null {
  const answer = parsed(text);
  if (typeof answer !== 'object' || answer === null || Array.isArray(answer)) return null;
  if (!('score' in answer && 'feedback' in answer)) return null;
  const { score, feedback } = answer;
  if (typeof score !== 'number' || !(score >= 0 && score <= 10) || typeof feedback !== 'string') return null;
  if (namesTwice(text, 'score') || namesTwice(text, 'feedback')) return null;
  // abs: minus zero is in range but becomes zero in the log, and what is adopted must equal what is recorded.
  return { score: Math.abs(score), feedback: feedback.toWellFormed() };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Whether the outermost object of a valid JSON text holds a key more than once, of which JSON.parse shows the last. */
function namesTwice(json: string, key: string): boolean {
  let depth = 0;
  let found = 0;
  for (const [token, name] of json.matchAll(NAMES_AND_BRACKETS)) {
    if (token === '{' || token === '[') depth += 1;
    else if (token === '}' || token === ']') depth -= 1;
    else if (depth === 1 && name !== undefined && JSON.parse(name) === key) found += 1;
  }
  return found > 1;
}

/** Strings (captured when a colon makes them names) and brackets. Linear: no two quantifiers compete for a character. */
const NAMES_AND_BRACKETS = /("[^"\\]*(?:\\.[^"\\]*)*")(?=\s*:)|"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\]]/g;
