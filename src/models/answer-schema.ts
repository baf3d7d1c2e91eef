/** JSON schemas of answers for providers that enforce them. As strict mode requires: all properties required, no others. */
import type { JSONSchema7 } from '@ai-sdk/provider';
import type { ModelRequest } from './port.js';

/**
 * The scores a critic chooses from (schemas/critic-answer.json). As texts: servers that enforce a schema by a grammar
 * (llama.cpp) ignore the bounds of a number, and Gemini accepts enums of texts only.
 */
const SCORES = Array.from({ length: 21 }, (_, halves) => String(halves / 2));

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
  score: { type: 'string', enum: SCORES, description: 'From 0 to 10; 8 or more approves the draft.' },
  feedback: text('What would raise the score.'),
});
