/** A model that answers at once with drafts of 40 KB and scores 6, 7, 8, and with control characters for terminals. */
import type { LanguageModel } from '../../src/models/port.js';

/** Clears the screen, sets its title and reverses text, in both kinds of control characters. */
export const COMMANDS = '\x1b[2J\x1b]0;mine\x07 \x9b31m \u202Eright to left\u202C \u2066x\u2069 \x7f\b\r';

const LINES = 500;

export function wordyModel(): LanguageModel {
  return {
    provider: 'wordy',
    defaultModel: 'wordy',
    ask({ promptInput: { draft }, answer }) {
      const number = Number(/^Draft (\d+)/.exec(draft ?? '')?.[1] ?? '0');
      const lines = Array.from(
        { length: LINES },
        (_, index) =>
          `Line ${index} of whatever there is to say about it, ${index % 10 === 0 ? `in draft ${number + 1}` : 'unchanged'}.`,
      );
      const text =
        answer === 'critique'
          ? JSON.stringify({ score: 5 + number, feedback: `Draft ${number} ${COMMANDS} could be better.` })
          : [`Draft ${number + 1} ${COMMANDS}`, ...lines].join('\n');
      return Promise.resolve({ text, usage: { inputTokens: 10, outputTokens: 10 } });
    },
  };
}
