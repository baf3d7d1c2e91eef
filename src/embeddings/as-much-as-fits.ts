import { ModelFailed } from '../errors.js';
import { normalised, type EmbeddingOptions, type Embeddings } from './port.js';

type Embed = Embeddings['embed'];

/**
 * Embeds texts even where the server accepts less: it splits batches, and a text that is too large alone is embedded in
 * parts whose vectors are averaged, weighted by length. The chunk that is found and cited stays whole. The accepted
 * length is remembered.
 *
 * @throws {ModelFailed} `input_too_large` when not even a few words fit
 */
export function asMuchAsFits(embed: Embed): Embed {
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
      const units = texts[0]?.length ?? 0;
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

/** The weighted mean; of one vector itself. Vectors that cancel each other out have no mean: the first is taken. */
function meanOf(vectors: readonly Float32Array[], texts: readonly string[]): Float32Array {
  const [first = new Float32Array()] = vectors;
  if (vectors.length === 1) return first;
  const sum = new Float64Array(first.length);
  vectors.forEach((vector, index) => {
    const weight = texts[index]?.length ?? 0;
    vector.forEach((value, at) => (sum[at] = (sum[at] ?? 0) + weight * value));
  });
  return normalised(sum) ?? first;
}

/** Shortest part in UTF-16 units: a server that accepts less is misconfigured. */
const SHORTEST_UNITS = 100;
