/**
 * Vectors without a model: signed hashing of words and their parts. Texts are near when they share words, or words that
 * look alike (plural, ending, typing error); meaning plays no part.
 */
import { DIMENSIONS, normalised, type Embeddings } from './port.js';
import { wordsOf } from './words.js';

/** Raise the number when the algorithm changes a text's vector. */
export const OFFLINE_EMBEDDING_MODEL = 'offline-hash-2';

/** Weight of all parts of a word together; the word itself weighs 1. */
const PARTS_WEIGHT = 1;
const PART_UNITS = 4;
/** Weight by length in UTF-16 units, 1 for longer words: short words are mostly grammar. */
const SHORT_WEIGHTS = [0, 0.1, 0.2, 0.35, 0.7];

/** Embeddings by `offlineVector`, computed in this process. */
export function offlineEmbeddings(): Embeddings {
  return {
    model: OFFLINE_EMBEDDING_MODEL,
    dimensions: DIMENSIONS,
    async embed(texts, { signal }) {
      signal.throwIfAborted();
      return texts.map(offlineVector);
    },
  };
}

/**
 * A vector of 768 dimensions and length 1, or zeros for a text without a word. Each distinct word, and each run of four
 * units of it with its edges marked, adds to the dimension that its hash (FNV-1a, 32 bits, of UTF-16 units) names, or
 * subtracts from it; the sign is a bit of the hash. A word weighs the square root of its count, short words less. Every
 * machine computes the same vector: IEEE 754 defines additions, products, divisions and roots.
 */
export function offlineVector(text: string): Float32Array {
  const sums = new Float64Array(DIMENSIONS);
  for (const [word, count] of counted(wordsOf(text))) {
    const weight = Math.sqrt(count) * weightOf(word);
    add(sums, hashOf(word, 0, word.length), weight);
    addParts(sums, `<${word}>`, weight * PARTS_WEIGHT);
  }
  return normalised(sums) ?? new Float32Array(DIMENSIONS);
}

function counted(words: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
  return counts;
}

/** Character pairs of scripts without spaces are short but have full weight. */
function weightOf(word: string): number {
  return word.charCodeAt(0) >= 0x0e00 ? 1 : (SHORT_WEIGHTS[word.length] ?? 1);
}

function addParts(sums: Float64Array, edged: string, weight: number): void {
  const parts = edged.length - PART_UNITS + 1;
  if (parts < 2) return;
  const each = weight / Math.sqrt(parts);
  for (let at = 0; at < parts; at += 1) add(sums, hashOf(edged, at, at + PART_UNITS), each);
}

function add(sums: Float64Array, hash: number, weight: number): void {
  const at = (hash >>> 1) % DIMENSIONS;
  sums[at] = (sums[at] ?? 0) + ((hash & 1) === 0 ? weight : -weight);
}

/** FNV-1a with murmur3's finalizer, because its lowest bits alone are not evenly distributed. */
function hashOf(text: string, from: number, to: number): number {
  let hash = 0x811c9dc5;
  for (let at = from; at < to; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
