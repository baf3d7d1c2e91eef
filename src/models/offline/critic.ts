/** The offline model as a critic. */
import type { ModelRequest } from '../port.js';
import { joinedAnswers } from './author.js';
import { criticMindOf } from './mind.js';
import { CRITIC, PARTS, requestFor } from './parts.js';

/** Of a draft that has a text, besides one for each part. */
const POINTS_FOR_TEXT = 4;
const RULE = `${POINTS_FOR_TEXT} points for a text, 1 each for ${PARTS.map(({ name }) => name).join(', ')}.`;

/**
 * Scores a draft by its form, never by its content; 0 without a draft, 10 never. The feedback states the rule and asks
 * for the first two parts that are missing, so that a draft gains at most 2 points a round. A mind other than the first
 * takes a point off if its section is missing, and asks for it first.
 */
export function critiqueOf(request: ModelRequest): string {
  const draft = joinedAnswers(request.promptInput) ?? request.promptInput.draft;
  if (draft === null || draft.trim() === '')
    return JSON.stringify({ score: 0, feedback: `${CRITIC} there is no draft.` });
  const { index, section } = criticMindOf(request);
  const isMissed = index > 0 && !section.isIn(draft);
  const absent = PARTS.filter((part) => !part.isIn(draft));
  const missing = (isMissed ? [section, ...absent.filter((part) => part !== section)] : absent).map(requestFor);
  const score = POINTS_FOR_TEXT + PARTS.length - missing.length - (isMissed ? 1 : 0);
  const wanted = missing.length === 0 ? 'Nothing is missing by these rules.' : missing.slice(0, 2).join(' ');
  const rule = isMissed ? `${RULE} 1 less without ${section.name}.` : RULE;
  return JSON.stringify({ score, feedback: `${CRITIC} ${rule} That makes ${score} of 10. ${wanted}` });
}
