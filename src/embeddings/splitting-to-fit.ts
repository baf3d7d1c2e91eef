/** Embeds texts even if a server accepts fewer at once, or only shorter ones. */
import { ModelFailed } from '../errors.js';
import { elementAt } from '../system/element.js';
import type { EmbeddingOptions, Embeddings } from './port.js';
import { normalised } from './port.js';

type Embed = Embeddings['embed'];

/**
 * Embeds texts on a server that accepts less at once: splits batches, and embeds a text that is too large alone in parts,
 * whose vectors it averages, weighted by length. The chunk that is found and cited stays complete. Remembers the accepted
 * length.
 *
 * @throws {ModelFailed} `input_too_large` if the server refuses even `SHORTEST_UNITS`
 */
export function splittingToFit(embed: Embed): Embed {
  let longestUnits = Number.POSITIVE_INFINITY;

  async function embedAll(texts: readonly string[], options: EmbeddingOptions): Promise<readonly Float32Array[]> {
    const parts = texts.map((text) => partsOf(text, longestUnits));
    const vectors = await embedParts(parts.flat(), options);
    let from = 0;
    return parts.map((each) => {
      const own = vectors.slice(from, (from += each.length));
      return meanOf(own, each);
    });
  }

  async function embedParts(texts: readonly string[], options: EmbeddingOptions): Promise<readonly Float32Array[]> {
    try {
      return await embed(texts, options);
    } catch (error) {
      if (!(error instanceof ModelFailed) || error.data.kind !== 'input_too_large') throw error;
      const half = Math.ceil(texts.length / 2);
      if (texts.length > 1) {
        return [...(await embedAll(texts.slice(0, half), options)), ...(await embedAll(texts.slice(half), options))];
      }
      const units = elementAt(texts, 0).length;
      if (units < 2 * SHORTEST_UNITS) throw error;
      longestUnits = Math.min(longestUnits, Math.ceil(units / 2));
      return await embedAll(texts, options);
    }
  }

  return embedAll;
}

/** Cuts after a space where possible. */
function partsOf(text: string, longestUnits: number): readonly string[] {
  const parts: string[] = [];
  let rest = text;
  while (rest.length > longestUnits) {
    const at = cutOf(rest, longestUnits);
    parts.push(rest.slice(0, at));
    rest = rest.slice(at);
  }
  return [...parts, rest];
}

function cutOf(text: string, longestUnits: number): number {
  const space = text.lastIndexOf(' ', longestUnits - 1) + 1;
  if (space > longestUnits / 2) return space;
  const unit = text.charCodeAt(longestUnits);
  const isWithinPair = unit >= 0xdc00 && unit <= 0xdfff;
  return isWithinPair ? longestUnits - 1 : longestUnits;
}

/** The weighted mean. Vectors that cancel each other out have none: then the first vector. */
function meanOf(vectors: readonly Float32Array[], texts: readonly string[]): Float32Array {
  const first = elementAt(vectors, 0);
  if (vectors.length === 1) return first;
  const sum = new Float64Array(first.length);
  vectors.forEach((vector, index) => {
    const weight = elementAt(texts, index).length;
    vector.forEach((value, at) => (sum[at] = (sum[at] ?? 0) + weight * value));
  });
  return normalised(sum) ?? first;
}

/** Shortest part, in UTF-16 units: a server that accepts less is misconfigured. */
const SHORTEST_UNITS = 100;
