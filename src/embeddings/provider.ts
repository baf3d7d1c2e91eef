/** The embeddings that the environment chooses. */
import type { System } from '../system/system.js';
import type { Config } from '../config.js';
import { ConfigInvalid } from '../errors.js';
import { EMBEDDING_LIMITS } from './http-call.js';
import type { Embeddings } from './port.js';
import { geminiEmbeddings } from './gemini.js';
import { offlineEmbeddings } from './offline.js';
import { openAiEmbeddings } from './openai.js';

/**
 * Builds the adapter of a provider; sends nothing.
 *
 * @throws {ConfigInvalid} for a `GEMINI_EMBEDDING_MODEL` that cannot be a name
 */
export async function embeddingsOf(
  settings: Config['embeddings'],
  system: Pick<System, 'after' | 'now' | 'random'>,
): Promise<Embeddings> {
  switch (settings.name) {
    case 'offline':
      return offlineEmbeddings();
    case 'gemini': {
      const { isModelName, MODEL_NAMES } = await import('../models/gemini/client.js');
      if (!isModelName(settings.model)) {
        throw new ConfigInvalid({
          variable: 'GEMINI_EMBEDDING_MODEL',
          value: settings.model,
          accepted: MODEL_NAMES,
        });
      }
      return geminiEmbeddings({ ...settings, limits: EMBEDDING_LIMITS, system });
    }
    case 'openai':
      return openAiEmbeddings({ ...settings, limits: EMBEDDING_LIMITS, system });
    default:
      return settings satisfies never;
  }
}
