/** How fast passages are found, and what the index of them takes. */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { DIMENSIONS } from '../../src/embeddings/port.js';
import { OFFLINE_EMBEDDING_MODEL } from '../../src/embeddings/offline.js';
import type { SearchIndex } from '../../src/search/index-client.js';
import { filledIndex, openSoundIndex } from '../support/filled-index.js';
import { realChunks, realQueries } from '../support/real-texts.js';
import { recallOf } from '../support/recall.js';
import { seededRandom } from '../support/seeded-random.js';
import { tempDir } from '../support/temp-dir.js';
import { figure, unmeasured, type Effort, type Figure, type Part } from './figure.js';
import { watchLoopDelay } from './loop-delay.js';
import { residentMb } from './machine.js';
import { percentile } from './statistics.js';

/** Exact scores of all passages are computed in this process for each. */
const RECALL_QUERIES = 30;
const RECALL_PASSAGES = 20_000;
const TOP_K = 5;
/** Issue 6, item 3. */
const TARGET = { latency: { atMost: 50 }, memory: { atMost: 500 }, recall: { atLeast: 0.95 } };

export const chunksPart: Part = {
  name: 'passages',
  method: ({ passages, requests }) =>
    `${passages.map((each) => each.toLocaleString('en-US')).join(', ')} passages of about 1,000 characters, the texts of ` +
    'the packages in node_modules (READMEs first, then declarations and programs; where they do not suffice, parts of ' +
    `two of them put together), ${requests} queries of 3 to 12 words in a row out of them, one after the other, offline ` +
    'vectors of both computed in the worker, vectors and words ranked. Memory is what the process holds after the file ' +
    'is opened again and queried, beyond what it held before. Recall is that of the vector ranking, against all exact ' +
    `scores, of up to ${RECALL_PASSAGES.toLocaleString('en-US')} passages.`,
  async measure(effort) {
    const figures: Figure[] = [];
    const texts = enough(realChunks(Math.max(...effort.passages)), Math.max(...effort.passages));
    for (const count of effort.passages) figures.push(...(await measured(texts.slice(0, count), effort)));
    return figures;
  },
};

async function measured(texts: readonly string[], { requests }: Effort): Promise<readonly Figure[]> {
  const name = `${texts.length.toLocaleString('en-US')} passages`;
  const isLargest = texts.length >= 100_000;
  const dir = tempDir();
  const file = join(dir.path, 'passages.sqlite');
  const log = { identity: 'bench', head: '1' };
  const open = (): Promise<SearchIndex> =>
    openSoundIndex({ file, log, model: OFFLINE_EMBEDDING_MODEL, dimensions: DIMENSIONS });
  let index = await open();
  try {
    const delay = watchLoopDelay();
    const buildSeconds = await secondsOf(() => filledIndex(index, texts));
    const delayMs = delay.p99Ms();
    await index.close();
    globalThis.gc?.();
    const before = residentMb(process.pid, 'VmRSS');
    const openSeconds = await secondsOf(async () => (index = await open()));
    const times = await latencies(index, realQueries(texts, requests, seededRandom(1)));
    const after = residentMb(process.pid, 'VmRSS');
    const memory =
      before === null || after === null
        ? unmeasured(`${name}: memory`, 'MB', 'this system has no /proc')
        : figure(`${name}: memory`, 'MB', [after - before], isLargest ? TARGET.memory : null);
    const looked = texts.length <= RECALL_PASSAGES ? realQueries(texts, RECALL_QUERIES, seededRandom(2)) : [];
    return [
      figure(`${name}: query, p50`, 'ms', [percentile(times, 0.5)]),
      figure(`${name}: query, p95`, 'ms', [percentile(times, 0.95)], TARGET.latency),
      memory,
      figure(`${name}: file`, 'MB', [statSync(file).size / 1e6]),
      figure(`${name}: built anew`, 's', [buildSeconds]),
      figure(`${name}: event-loop delay while built, p99`, 'ms', [delayMs]),
      figure(`${name}: opened`, 's', [openSeconds]),
      ...(looked.length > 0
        ? [figure(`${name}: recall@10`, '', [await recallOf(index, texts, looked)], TARGET.recall)]
        : []),
    ];
  } finally {
    await index.close();
    dir.remove();
  }
}

async function latencies(index: SearchIndex, queries: readonly string[]): Promise<readonly number[]> {
  const times: number[] = [];
  for (const text of queries) {
    const from = performance.now();
    await index.search({ text, vector: null, topK: TOP_K });
    times.push(performance.now() - from);
  }
  return times;
}

async function secondsOf(act: () => Promise<unknown>): Promise<number> {
  const from = performance.now();
  await act();
  return (performance.now() - from) / 1_000;
}

/** Half of one text and half of another make one more, until there are enough. */
function enough(texts: readonly string[], count: number): readonly string[] {
  const half = (at: number): string => texts[at % texts.length]?.slice(0, 520) ?? '';
  const more = Array.from({ length: Math.max(0, count - texts.length) }, (_, at) => `${half(at)}\n${half(at * 7 + 3)}`);
  return [...texts, ...more];
}
