type Embed = Embeddings['embed'];

/** Embeds texts in batches of this size, one after the other. Makes no request for an empty list. */
export function inBatches(size: number, embed: Embed): Embed {
  return async (texts: readonly string[], options: EmbeddingOptions) => {
    const vectors: Float32Array[] = [];
    for (let from = 0; from < texts.length; from += size) {
      vectors.push(...(await embed(texts.slice(from, from + size), options)));
    }
    return vectors;
  };
}

/** Some models embed chunks, which a search finds, and queries differently. */
export type TextKind = 'chunk' | 'query';

export interface EmbeddingOptions {
  readonly kind: TextKind;
  readonly signal: AbortSignal;
}

/** The more alike two texts are, the larger the dot product of their vectors. Vectors of two models do not compare. */
export interface Embeddings {
  /** Stored beside every vector, to tell models apart. */
  readonly model: string;
  readonly dimensions: number;
  /**
   * One vector per text, in order, of length 1. The offline model gives zeros for a text without a word.
   *
   * @throws {ModelFailed} with the provider's failure, `aborted` by the signal, or `timeout`
   */
  embed(texts: readonly string[], options: EmbeddingOptions): Promise<readonly Float32Array[]>;
}

/** Dimensions of every vector, even if the model offers more. */
export const DIMENSIONS = 768;

/** The vector scaled to length 1, or null if it is zero or holds a number that is not finite. */
export function normalised(values: ArrayLike<number>): Float32Array | null {
  let squares = 0;
  for (let at = 0; at < values.length; at += 1) squares += (values[at] ?? 0) ** 2;
  const length = Math.sqrt(squares);
  if (!(length > 0) || !Number.isFinite(length)) return null;
  return Float32Array.from(values, (value) => value / length);
}

/** Most vectors of one event: 64 of 768 dimensions are 256 KiB as base64, half the limit of an append. */
export const VECTORS_PER_EVENT = 64;

/** A vector as events hold it: base64 of little-endian Float32, a quarter of the size of JSON numbers. */
export function vectorToBase64(vector: Float32Array): string {
  const bytes = Buffer.alloc(vector.length * 4);
  vector.forEach((value, at) => bytes.writeFloatLE(value, at * 4));
  return bytes.toString('base64');
}

/** The vector of a base64 text, or null if it does not hold exactly this many finite numbers. */
export function vectorFromBase64(text: string, dimensions: number): Float32Array | null {
  const bytes = Buffer.from(text, 'base64');
  // Buffer ignores invalid characters, so only text that it would write itself is accepted.
  if (bytes.length !== dimensions * 4 || bytes.toString('base64') !== text) return null;
  const vector = Float32Array.from({ length: dimensions }, (_, at) => bytes.readFloatLE(at * 4));
  return vector.every(Number.isFinite) ? vector : null;
}
