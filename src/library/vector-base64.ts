/** Vectors as events hold them: base64 of little-endian Float32, a quarter of what JSON numbers take. */

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
