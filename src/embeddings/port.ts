type Embed = Embeddings['embed'];

/** Embeds texts in batches of this size, one after the other; makes no request without texts. */
export function inBatches(size: number, embed: Embed): Embed {
  return async (texts: readonly string[], options: EmbeddingOptions) => {
    const vectors: Float32Array[] = [];
    for (let from = 0; from < texts.length; from += size) {
      vectors.push(...(await embed(texts.slice(from, from + size), options)));
    }
    return vectors;
  };
}

/** Whether a text is a chunk to be found or a query: some models embed them differently. */
export type TextKind = 'chunk' | 'query';

export interface EmbeddingOptions {
  readonly kind: TextKind;
  readonly signal: AbortSignal;
}

/** The nearer two texts are, the larger the dot product of their vectors. Vectors of different models never compare. */
export interface Embeddings {
  /** Stored beside every vector, to tell models apart. */
  readonly model: string;
  readonly dimensions: number;
  /**
   * One vector a text, in their order, each of length 1; of zeros for a text in which the offline method finds no word.
   *
   * @throws {ModelFailed} with the provider's failure, `aborted` by the signal, or `timeout`
   */
  embed(texts: readonly string[], options: EmbeddingOptions): Promise<readonly Float32Array[]>;
}

/** Dimensions of every vector, even where a model could give more. */
export const DIMENSIONS = 768;

/** The vector with length 1; null when it has none: zeros, or a number that is not finite. */
export function normalised(values: ArrayLike<number>): Float32Array | null {
  let squares = 0;
  for (let at = 0; at < values.length; at += 1) squares += (values[at] ?? 0) ** 2;
  const length = Math.sqrt(squares);
  if (!(length > 0) || !Number.isFinite(length)) return null;
  return Float32Array.from(values, (value) => value / length);
}

/** Most vectors of one event: 64 of 768 dimensions are 256 KiB as base64, half of what the log takes. */
export const VECTORS_PER_EVENT = 64;

/** A vector as events hold it: base64 of little-endian Float32, a quarter of the size of JSON numbers. */
export function vectorToBase64(vector: Float32Array): string {
  const bytes = Buffer.alloc(vector.length * 4);
  vector.forEach((value, at) => bytes.writeFloatLE(value, at * 4));
  return bytes.toString('base64');
}

/** The vector of a base64 text; null unless it has exactly this many finite numbers. */
export function vectorFromBase64(text: string, dimensions: number): Float32Array | null {
  const bytes = Buffer.from(text, 'base64');
  // Buffer ignores invalid characters, so only text that it would write itself is accepted.
  if (bytes.length !== dimensions * 4 || bytes.toString('base64') !== text) return null;
  const vector = Float32Array.from({ length: dimensions }, (_, at) => bytes.readFloatLE(at * 4));
  return vector.every(Number.isFinite) ? vector : null;
}
