/** Measures the recall of a search: its best ten against the best ten by exact scores. */
import { normalised } from '../../src/embeddings/port.js';
import { topK } from '../../src/search/top-k.js';
import { offlineVector } from '../../src/embeddings/offline.js';
import type { SearchIndex } from '../../src/search/index-client.js';

const NEAREST = 10;

/**
 * Recall@10 of the vector ranking, 0 to 1, over an index that holds these texts, chunk by chunk in their order and with
 * offline vectors. A chunk with the same score as the tenth counts as found.
 */
export async function recallOf(index: SearchIndex, texts: readonly string[], queries: readonly string[]) {
  const vectors = texts.map(offlineVector);
  const keys = texts.map((_, at) => at);
  let [found, wanted] = [0, 0];
  for (const text of queries) {
    const query = normalised(offlineVector(text));
    if (query === null) continue;
    const scores = vectors.map((vector) => dot(query, vector));
    const exact = topK(scores, keys, NEAREST).filter(({ score }) => score > 0);
    const worst = Math.min(...exact.map(({ score }) => score));
    const answer = await index.search({ text, vector: null, topK: NEAREST, ranking: 'vector' });
    wanted += exact.length;
    found += answer.filter(({ chunk }) => (scores[chunk] ?? 0) >= worst).length;
  }
  return found / wanted;
}

function dot(one: Float32Array, other: Float32Array): number {
  let sum = 0;
  for (let at = 0; at < one.length; at += 1) sum += (one[at] ?? 0) * (other[at] ?? 0);
  return sum;
}
