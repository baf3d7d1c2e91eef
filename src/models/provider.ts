/** The language model that the environment chooses. */
import type { System } from '../system/system.js';
import type { Config } from '../config.js';
import { ConfigInvalid } from '../errors.js';
import { offlineModel } from './offline.js';
import type { LanguageModel } from './port.js';

/**
 * Builds the adapter of a provider, loading only its own code; sends nothing.
 *
 * @throws {ConfigInvalid} for a `GEMINI_MODEL` that cannot be a name
 */
export async function languageModel(
  provider: Config['modelProvider'],
  system: Pick<System, 'after' | 'now'>,
): Promise<LanguageModel> {
  switch (provider.name) {
    case 'offline':
      return offlineModel({ latencyMs: provider.latencyMs, system });
    case 'gemini': {
      const { geminiModel, isModelName, MODEL_NAMES } = await import('./gemini/client.js');
      if (!isModelName(provider.model)) {
        throw new ConfigInvalid({ variable: 'GEMINI_MODEL', value: provider.model, accepted: MODEL_NAMES });
      }
      return geminiModel({ ...provider, system });
    }
    case 'openai': {
      const { openAiModel } = await import('./openai/client.js');
      return openAiModel({ ...provider, system });
    }
    default:
      return provider satisfies never;
  }
}
