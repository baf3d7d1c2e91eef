import { ConfigInvalid, ModelFailed } from '../errors.js';
import type { Embeddings } from './port.js';
import type { PlainHttpGuardOptions } from '../models/plain-http.js';
import { plainHttpGuard } from '../models/plain-http.js';
import type { System } from '../system/system.js';
import type { Config } from '../config.js';
import { EMBEDDING_LIMITS } from './http-call.js';
import { geminiEmbeddings } from './gemini.js';
import { offlineEmbeddings } from './offline.js';
import { openAiEmbeddings } from './openai.js';

/**
 * Reports each lasting failure of an embedding provider once, not for every text: again only after a success, or for
 * another kind of failure.
 */
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
        if (isLasting(error) && error.data.kind !== reported) {
          reported = error.data.kind;
          report(error);
        }
        throw error;
      }
    },
  };
}

/** Whether a failure to embed stays until somebody changes a setting, here or at the server. */
export function isLasting(error: unknown): error is ModelFailed {
  return error instanceof ModelFailed && !error.data.retryable;
}

// The embeddings that the environment chooses.

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
      return guarded(geminiEmbeddings({ ...settings, limits: EMBEDDING_LIMITS, system }), {
        baseUrl: settings.baseUrl,
        setting: 'GEMINI_BASE_URL',
        system,
      });
    }
    case 'openai':
      return guarded(openAiEmbeddings({ ...settings, limits: EMBEDDING_LIMITS, system }), {
        baseUrl: settings.baseUrl,
        setting: 'OPENAI_BASE_URL',
        system,
      });
    default:
      return settings satisfies never;
  }
}

function guarded(embeddings: Embeddings, options: PlainHttpGuardOptions): Embeddings {
  const guard = plainHttpGuard(options);
  return {
    ...embeddings,
    embed: (texts, { signal, ...given }) => guard((cut) => embeddings.embed(texts, { ...given, signal: cut }), signal),
  };
}
