/** JSON schemas of answers for providers that enforce them. As strict mode requires: all properties required, no others. */
import type { JSONSchema7 } from '@ai-sdk/provider';
import type { ModelRequest } from './port.js';

/**
 * The scores a critic chooses from (schemas/critic-answer.json). As texts: servers that enforce a schema by a grammar
 * (llama.cpp) ignore the bounds of a number, and Gemini accepts enums of texts only.
 */
const SCORES = Array.from({ length: 21 }, (_, halves) => String(halves / 2));

/**
 * The schema of the answer to a request, or null if it has none. It names the letters of the responses shown alone. The schema
 * of a format goes out as its author wrote it, if it describes an object: servers that refuse it are asked in another form.
 */
export function answerSchema({ answer, promptInput: { answers = [], schema } }: ModelRequest): JSONSchema7 | null {
  const letters = answers.map(({ letter }) => letter);
  switch (answer) {
    case 'draft':
      return null;
    case 'critique':
      return CRITIC_ANSWER;
    case 'ranking':
      return objectOf({ ranking: listOf(oneOf(letters), RANKING_LISTS), comment: text(COMMENT_SAYS) });
    case 'analysis':
      return analysisOf(oneOf(letters));
    case 'output':
      return schema?.['type'] === 'object' ? schema : null;
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
