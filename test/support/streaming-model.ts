/** A scripted model that streams its text word by word before it answers. */
import type { LanguageModel } from '../../src/models/port.js';
import type { ScriptedModel } from './scripted-model.js';

export function streamingModel(model: ScriptedModel): LanguageModel {
  return {
    ...model,
    async ask(request, call) {
      const answer = await model.ask(request, call);
      for (const word of answer.text.match(/\S+\s*/g) ?? []) {
        request.onToken?.(word);
        await new Promise(setImmediate);
      }
      return answer;
    },
  };
}
