import type { EmbeddingTerms, Embeddings } from './embeddings.js';

type Embed = Embeddings['embed'];

/** Embeds so many texts at once, one batch after the other; no text, no request. */
export function inBatches(size: number, embed: Embed): Embed {
  return async (texts: readonly string[], terms: EmbeddingTerms) => {
    const vectors: Float32Array[] = [];
    for (let from = 0; from < texts.length; from += size) {
      vectors.push(...(await embed(texts.slice(from, from + size), terms)));
    }
    return vectors;
  };
}
