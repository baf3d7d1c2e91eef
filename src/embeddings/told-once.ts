import { ModelFailed } from '../errors.js';
import type { Embeddings } from './port.js';

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
