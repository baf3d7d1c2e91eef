import { ModelFailed } from '../../errors.js';
import type { GeminiDialect } from './request.js';
import type { ModelAnswer, ModelRequest } from '../port.js';

type Ask = (dialect: GeminiDialect) => Promise<ModelAnswer>;

/**
 * Asks for a critique by its schema, and by the prompt alone where the model refuses a schema beside tools. The refusal
 * is remembered per model.
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
    // Model names come from blueprints, so the set is bounded: when full it is cleared and learnt again.
    if (refusing.size >= MAX_REMEMBERED) refusing.clear();
    refusing.add(model);
    return plain;
  };
}

const MAX_REMEMBERED = 1000;
