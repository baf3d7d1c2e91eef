import { ModelFailed } from '../errors.js';
import type { GeminiDialect } from './gemini/request.js';
import type { ModelAnswer, ModelRequest } from './port.js';

type Ask = (dialect: GeminiDialect) => Promise<ModelAnswer>;

/**
 * Asks for a critique beside tools by its schema, and by the prompt alone where the model refuses both together. That is
 * remembered for the model.
 */
export function schemaOrPrompt(): (model: string, request: ModelRequest, ask: Ask) => Promise<ModelAnswer> {
  const refusing = new Set<string>();
  return async (model, { answer, tools = [] }, ask) => {
    if (refusing.has(model)) return ask({ schemaBesideTools: false });
    try {
      return await ask({ schemaBesideTools: true });
    } catch (error) {
      const isRefused = error instanceof ModelFailed && error.data.kind === 'bad_request';
      if (!isRefused || answer !== 'critique' || tools.length === 0) throw error;
    }
    const plain = await ask({ schemaBesideTools: false });
    // Names of models come from blueprints: when there are too many, all are learnt again.
    if (refusing.size >= MAX_REMEMBERED) refusing.clear();
    refusing.add(model);
    return plain;
  };
}

const MAX_REMEMBERED = 1000;
