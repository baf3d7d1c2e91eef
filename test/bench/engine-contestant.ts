/** This service's engine in a contest: hash chains, read models and all, without an edge. */
import type { LanguageModel } from '../../src/models/port.js';
import type { Contestant, CouncilModel } from './contestant.js';
import { openBenchEngine } from './bench-engine.js';

export async function openContestant({
  path,
  model,
}: {
  readonly path: string;
  readonly model: CouncilModel;
}): Promise<Contestant> {
  return await openBenchEngine({ path, model: languageModel(model) });
}

/** Adapts the contest's model to the engine. */
export function languageModel(model: CouncilModel): LanguageModel {
  return {
    provider: 'contest',
    defaultModel: 'contest',
    async ask({ answer, promptInput: { draft } }) {
      const text = answer === 'draft' ? await model.draft(draft) : JSON.stringify(await model.critique(draft));
      return { text, usage: { inputTokens: 10, outputTokens: 10 } };
    },
  };
}
