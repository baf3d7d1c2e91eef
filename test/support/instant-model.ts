/** A model that answers at once: drafts of a few words, scores 6, 7, 8 by the number of the draft. */
import type { LanguageModel } from '../../src/models/port.js';

export function instantModel(): LanguageModel {
  return {
    provider: 'instant',
    defaultModel: 'instant',
    ask({ answer, promptInput: { draft } }) {
      const text = answer === 'critique' ? JSON.stringify(instantCritique(draft)) : instantDraft(draft);
      return Promise.resolve({ text, usage: { inputTokens: 10, outputTokens: 10 } });
    },
  };
}

/** An instant model that answers nothing until `held` resolves. */
export function heldModel(held: Promise<void>): LanguageModel {
  const model = instantModel();
  return { ...model, ask: (request, call) => held.then(() => model.ask(request, call)) };
}

/** The draft that follows a draft, or the first one. */
export function instantDraft(draft: string | null): string {
  return `Draft ${numberOf(draft) + 1}`;
}

export function instantCritique(draft: string | null): { readonly score: number; readonly feedback: string } {
  const number = numberOf(draft);
  return { score: Math.min(10, 5 + number), feedback: `Draft ${number} could be better.` };
}

function numberOf(draft: string | null): number {
  return Number(draft?.slice('Draft '.length) ?? '0');
}
