/** Requests to models in tests, and checks of their failures. */
import { expect } from 'chai';
import { ModelFailed } from '../../src/errors.js';
import type { ModelRequest } from '../../src/models/port.js';
import { rejectionOf } from './rejection.js';

export const REQUEST: ModelRequest = {
  system: 'You are "Master". Answer with JSON.',
  prompt: '<topic>\nTrees\n</topic>\n\nWrite the draft.',
  promptInput: { label: 'Master', role: 'agent', systemPrompt: '', topic: 'Trees', draft: null, feedback: [] },
  answer: 'draft',
};

/** One tool with a parameter of each type. */
export const TOOLS: NonNullable<ModelRequest['tools']> = [
  {
    name: 'look',
    description: 'Looks.',
    parameters: {
      type: 'object',
      properties: {
        query: { type: 'string', description: 'What.' },
        top_k: { type: 'integer', description: 'How many.' },
      },
      required: ['query'],
    },
  },
];

/** The usage that `says()` of a fake server reports. */
export const REPORTED_USAGE = {
  inputTokens: 11,
  cachedInputTokens: null,
  cacheWriteTokens: null,
  outputTokens: 7,
  reasoningTokens: null,
};

/** The failure of a call. Expects a short message without the prompt and without the given secrets. */
export async function modelFailureOf(call: Promise<unknown>, ...hidden: readonly string[]): Promise<ModelFailed> {
  const error = await rejectionOf(call);
  if (!(error instanceof ModelFailed)) throw error;
  for (const text of [error.message, error.stack ?? '', JSON.stringify(error.data)]) {
    for (const each of [REQUEST.prompt, ...hidden]) expect(text).not.to.include(each);
  }
  expect(error.cause).to.equal(undefined);
  expect(error.message.length).to.be.lessThan(600);
  return error;
}
