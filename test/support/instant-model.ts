/**
 * A model that answers at once: drafts of a few words, scores 6, 7, 8 by the number of the draft, rankings in the order
 * shown, and empty analyses.
 */
import type { LanguageModel, ModelRequest } from '../../src/models/port.js';

export function instantModel(): LanguageModel {
  return {
    provider: 'instant',
    defaultModel: 'instant',
    ask(request) {
      return Promise.resolve({ text: textFor(request), usage: { inputTokens: 10, outputTokens: 10 } });
    },
  };
}

function textFor({ answer, promptInput: { draft, answers = [] } }: ModelRequest): string {
  switch (answer) {
    case 'draft':
      return instantDraft(draft);
    case 'critique':
      return JSON.stringify(instantCritique(draft));
    case 'ranking':
      return JSON.stringify({ ranking: answers.map(({ letter }) => letter), comment: 'In the order shown.' });
    case 'analysis':
      return JSON.stringify(EMPTY_ANALYSIS);
    case 'output':
      return JSON.stringify({ draft });
  }
}

const EMPTY_ANALYSIS = {
  consensus: [],
  contradictions: [],
  partial_coverage: [],
  unique_insights: [],
  blind_spots: [],
};

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
