/** JSON schemas of answers for providers that enforce them. As strict mode requires: all properties required, no others. */
import type { JSONSchema7 } from '@ai-sdk/provider';
import type { ModelRequest } from './port.js';
import { FEEDBACK_SAYS, SCORE_MEANS, SCORES } from './port.js';

/**
 * The schema of a kind of answer, or null if it has none.
 *
 * @param letters of the responses shown, which alone it may name
 */
export function answerSchema(answer: ModelRequest['answer'], letters: readonly string[]): JSONSchema7 | null {
  switch (answer) {
    case 'draft':
      return null;
    case 'critique':
      return CRITIC_ANSWER;
    case 'ranking':
      return objectOf({ ranking: listOf(oneOf(letters), RANKING_LISTS), comment: text(COMMENT_SAYS) });
    case 'analysis':
      return analysisOf(oneOf(letters));
    default:
      return answer satisfies never;
  }
}

const RANKING_LISTS = 'Each letter shown exactly once, best first.';
const COMMENT_SAYS = 'Why.';

function analysisOf(letter: JSONSchema7): JSONSchema7 {
  return objectOf({
    consensus: listOf(text('What the responses agree on.')),
    contradictions: listOf(
      objectOf({ topic: TEXT, stances: listOf(objectOf({ response: letter, stance: TEXT })) }),
      'Where they contradict each other, with the stance of each.',
    ),
    partial_coverage: listOf(
      objectOf({ responses: listOf(letter), point: TEXT }),
      'What some of them cover and others do not.',
    ),
    unique_insights: listOf(objectOf({ response: letter, insight: TEXT }), 'What one of them alone has seen.'),
    blind_spots: listOf(text('What none of them covers.')),
  });
}

const TEXT: JSONSchema7 = { type: 'string' };

function text(description: string): JSONSchema7 {
  return { ...TEXT, description };
}

function oneOf(letters: readonly string[]): JSONSchema7 {
  return letters.length === 0 ? TEXT : { ...TEXT, enum: [...letters] };
}

function listOf(items: JSONSchema7, description?: string): JSONSchema7 {
  return { type: 'array', items, ...(description !== undefined && { description }) };
}

function objectOf(properties: Readonly<Record<string, JSONSchema7>>): JSONSchema7 {
  return { type: 'object', additionalProperties: false, required: Object.keys(properties), properties };
}

const CRITIC_ANSWER = objectOf({
  score: { type: 'string', enum: [...SCORES], description: SCORE_MEANS },
  feedback: text(FEEDBACK_SAYS),
});
