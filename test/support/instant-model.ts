/** A model that answers at once: drafts of a few words, scores 6, 7, 8 by the number of the draft. */
import type { LanguageModel } from '../../src/models/port.js';

export function instantModel(): LanguageModel {
  return {
    provider: 'instant',
    defaultModel: 'instant',
    ask(request) {
      const { draft } = request.promptInput;
      const number = Number(draft?.slice(6) ?? '0');
      const text =
        request.answer === 'critique'
          ? JSON.stringify({ score: Math.min(10, 5 + number), feedback: `Draft ${number} could be better.` })
          : `Draft ${number + 1}`;
      return Promise.resolve({ text, usage: { inputTokens: 10, outputTokens: 10 } });
    },
  };
}
