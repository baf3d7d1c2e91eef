import { ModelFailed } from '../errors.js';
import type { Embeddings } from './port.js';

/**
 * Embeddings of which each failure that no wait mends is told once, not for every text: again only after vectors came,
 * or for another reason.
 */
export function reportFailureOnce(embeddings: Embeddings, tell: (failure: ModelFailed) => void): Embeddings {
  let told: string | null = null;
  return {
    ...embeddings,
    async embed(texts, terms) {
      try {
        const vectors = await embeddings.embed(texts, terms);
        if (texts.length > 0) told = null;
        return vectors;
      } catch (error) {
        if (isLasting(error) && error.data.kind !== told) {
          told = error.data.kind;
          tell(error);
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
