/** Measures the search for chunks, and the memory and disk space of their index. */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { OFFLINE_EMBEDDING_MODEL } from '../../src/embeddings/offline.js';
import { DIMENSIONS } from '../../src/embeddings/port.js';
import { filledIndex, openSoundIndex } from '../support/filled-index.js';
import { realChunks, realQueries } from '../support/real-texts.js';
import { seededRandom } from '../support/seeded-random.js';
import { tempDir } from '../support/temp-dir.js';
import { closedLoop } from './closed-loop.js';
import type { Effort, Figure, Part } from './figure.js';
import { figure } from './figure.js';
import { percentile } from './statistics.js';

const TARGET = { atMost: 50 };

export const searchPart: Part = {
  name: 'search',
  method: ({ requests }) =>
    `${requests} queries of 3 to 12 words in a row, one after the other, on chunks of about 1,000 characters: the texts of ` +
    'the packages in node_modules, and parts of two of them joined where they do not suffice. Offline vectors, ranked by ' +
    'vector and by words. The built index includes the vectors.',
  async measure(effort) {
    const largest = Math.max(...effort.chunks);
    const texts = joinedUpTo(largest, realChunks(largest));
    const figures: Figure[] = [];
    for (const count of effort.chunks) figures.push(...(await measured(texts.slice(0, count), effort)));
    return figures;
  },
};

async function measured(texts: readonly string[], { requests }: Effort): Promise<readonly Figure[]> {
  const name = `${texts.length.toLocaleString('en-US')} chunks`;
  const dir = tempDir();
  const file = join(dir.path, 'chunks.sqlite');
  const log = { identity: 'bench', head: '1' };
  const index = await openSoundIndex({ file, log, model: OFFLINE_EMBEDDING_MODEL, dimensions: DIMENSIONS });
  try {
    const from = performance.now();
    await filledIndex(index, texts);
    const buildSeconds = (performance.now() - from) / 1_000;
    const queries = realQueries(texts, requests, seededRandom(1)).values();
    const { latenciesMs } = await closedLoop({
      clients: 1,
      goesOn: (acts) => acts < requests,
      act: async () => {
        await index.search({ text: queries.next().value ?? '', vector: null, topK: 5 });
      },
    });
    return [
      figure(`${name}: search, p50`, 'ms', [percentile(latenciesMs, 0.5)]),
      figure(`${name}: search, p95`, 'ms', [percentile(latenciesMs, 0.95)], TARGET),
      figure(`${name}: file`, 'MB', [statSync(file).size / 1e6]),
      figure(`${name}: index built`, 's', [buildSeconds]),
    ];
  } finally {
    await index.close();
    dir.remove();
  }
}

/** Joins halves of texts until there are enough chunks. */
function joinedUpTo(count: number, texts: readonly string[]): readonly string[] {
  const half = (at: number): string => texts[at % texts.length]?.slice(0, 520) ?? '';
  const more = Array.from({ length: Math.max(0, count - texts.length) }, (_, at) => `${half(at)}\n${half(at * 7 + 3)}`);
  return [...texts, ...more];
}
