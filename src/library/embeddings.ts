/** Texts as vectors, as their users see it. */

/** Of a passage that is looked for, or of a query that looks: some models tell them apart. */
export type TextKind = 'passage' | 'query';

export interface EmbeddingTerms {
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
  embed(texts: readonly string[], terms: EmbeddingTerms): Promise<readonly Float32Array[]>;
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
