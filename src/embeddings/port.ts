type Embed = Embeddings['embed'];

/** Embeds so many texts at once, one batch after the other; no text, no request. */
export function inBatches(size: number, embed: Embed): Embed {
  return async (texts: readonly string[], options: EmbeddingOptions) => {
    const vectors: Float32Array[] = [];
    for (let from = 0; from < texts.length; from += size) {
      vectors.push(...(await embed(texts.slice(from, from + size), options)));
    }
    return vectors;
  };
}

// Texts as vectors, as their users see it.

/** Of a passage that is looked for, or of a query that looks: some models tell them apart. */
export type TextKind = 'passage' | 'query';

export interface EmbeddingOptions {
  readonly kind: TextKind;
  readonly signal: AbortSignal;
}

/** The nearer two texts are, the larger the dot product of their vectors. Vectors of different models never compare. */
export interface Embeddings {
  /** Told apart by it: kept beside every vector. */
  readonly model: string;
  readonly dimensions: number;
  /**
   * One vector a text, in their order, each of length 1; of zeros for a text in which the offline method finds no word.
   *
   * @throws {ModelFailed} what a provider answers, `aborted` by the signal, `timeout`
   */
  embed(texts: readonly string[], options: EmbeddingOptions): Promise<readonly Float32Array[]>;
}

/** Of every vector here, whatever more a model could give. */
export const DIMENSIONS = 768;

/** The vector with length 1; null when it has none: zeros, or a number that is not finite. */
export function normalised(values: ArrayLike<number>): Float32Array | null {
  let squares = 0;
  for (let at = 0; at < values.length; at += 1) squares += (values[at] ?? 0) ** 2;
  const length = Math.sqrt(squares);
  if (!(length > 0) || !Number.isFinite(length)) return null;
  return Float32Array.from(values, (value) => value / length);
}

// Vectors as events hold them: base64 of little-endian Float32, a quarter of what JSON numbers take.

/** Vectors of one event at the most: 64 of 768 dimensions are 256 KiB, a quarter of what the log takes. */
export const VECTORS_PER_EVENT = 64;

export function vectorToBase64(vector: Float32Array): string {
  const bytes = Buffer.alloc(vector.length * 4);
  vector.forEach((value, at) => bytes.writeFloatLE(value, at * 4));
  return bytes.toString('base64');
}

/** Null for what is no vector of so many finite numbers. */
export function vectorFromBase64(text: string, dimensions: number): Float32Array | null {
  const bytes = Buffer.from(text, 'base64');
  // Buffer skips what is no base64: only what it would write itself is taken.
  if (bytes.length !== dimensions * 4 || bytes.toString('base64') !== text) return null;
  const vector = Float32Array.from({ length: dimensions }, (_, at) => bytes.readFloatLE(at * 4));
  return vector.every(Number.isFinite) ? vector : null;
}
