/** The embeddings that the settings choose: of a provider, or computed here. */
import type { ProviderSettings } from '../config-providers.js';
import { ConfigInvalid, ModelFailed } from '../errors.js';
import { isUsableName, USABLE_NAMES } from '../models/wires/gemini.js';
import { offlineEmbeddings } from './offline.js';
import type { Embeddings } from './port.js';
import type { EmbeddingDeps } from './sdk-embeddings.js';

/**
 * Builds the adapter of a provider, loading its package; sends nothing.
 *
 * @param settings `model` is the embedding model; null computes vectors here
 * @throws {ConfigInvalid} for a model of Gemini that cannot be a name
 */
export async function embeddingsOf(settings: ProviderSettings | null, deps: EmbeddingDeps): Promise<Embeddings> {
  if (settings === null) return offlineEmbeddings();
  if (settings.api === 'gemini' && !isUsableName(settings.model)) {
    throw new ConfigInvalid({ variable: settings.settings.model, value: settings.model, accepted: USABLE_NAMES });
  }
  const { providerEmbeddings } = await import('./sdk-embeddings.js');
  return await providerEmbeddings(settings, deps);
}

/** Reports a permanent failure of an embedding provider once, and again after a success or another kind of failure. */
export function reportFailureOnce(embeddings: Embeddings, report: (failure: ModelFailed) => void): Embeddings {
  let reported: string | null = null;
  return {
    ...embeddings,
    async embed(texts, options) {
      try {
        const vectors = await embeddings.embed(texts, options);
        if (texts.length > 0) reported = null;
        return vectors;
      } catch (error) {
        if (isPermanent(error) && error.data.kind !== reported) {
          reported = error.data.kind;
          report(error);
        }
        throw error;
      }
    },
  };
}

/** Whether a failure to embed repeats until the operator changes a setting, here or at the server. */
export function isPermanent(error: unknown): error is ModelFailed {
  return error instanceof ModelFailed && !error.data.retryable;
}
