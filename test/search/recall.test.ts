import { expect } from 'chai';
import { join } from 'node:path';
import { codeOf, int8Index } from '../../src/search/int8-index.js';
import { DIMENSIONS } from '../../src/embeddings/port.js';
import { OFFLINE_EMBEDDING_MODEL } from '../../src/embeddings/offline.js';
import { filledIndex, openSoundIndex } from '../support/filled-index.js';
import { realChunks, realQueries } from '../support/real-texts.js';
import { recallOf } from '../support/recall.js';
import { seededRandom } from '../support/seeded-random.js';
import { tempDir } from '../support/temp-dir.js';
import { IS_SOAK, soakIt } from '../support/soak.js';

const SEED = Number(process.env['SEED'] ?? 20260101);
const [PASSAGES, QUERIES] = IS_SOAK ? [50_000, 100] : [1_500, 20];

describe(`Search for the nearest chunks of real texts (SEED=${SEED})`, () => {
  soakIt(`has a recall@10 of at least 0.95 over ${PASSAGES} chunks`, async () => {
    const dir = tempDir();
    const log = { identity: 'log-1', head: '1' };
    const setup = {
      file: join(dir.path, 'passages.sqlite'),
      log,
      model: OFFLINE_EMBEDDING_MODEL,
      dimensions: DIMENSIONS,
    };
    const index = await openSoundIndex(setup);
    try {
      const texts = realChunks(PASSAGES);
      await filledIndex(index, texts);
      expect(await recallOf(index, texts, realQueries(texts, QUERIES, seededRandom(SEED)))).to.be.at.least(0.95);
    } finally {
      await index.close();
      dir.remove();
    }
  });

  it('scores byte vectors nearly like full vectors, also after removals', () => {
    const random = seededRandom(SEED);
    const vector = (): Float32Array => Float32Array.from({ length: DIMENSIONS }, () => random() - 0.5);
    const vectors = Array.from({ length: 2_000 }, vector);
    const scan = int8Index(DIMENSIONS);
    vectors.forEach((each, key) => scan.add(key, codeOf(each)));
    const gone = new Set([...vectors.keys()].filter(() => random() < 0.3));
    scan.remove(gone);
    const query = vector();
    const scores = scan.nearest(query, vectors.length);
    expect(scores).to.have.lengthOf(vectors.length - gone.size);
    const [{ key: someKey, score: someScore } = { key: 0, score: 0 }] = scores;
    const dot = (key: number): number =>
      (vectors[key] ?? query).reduce((sum, each, at) => sum + each * (query[at] ?? 0), 0);
    const scale = someScore / dot(someKey);
    for (const { key, score } of scores) {
      expect(gone.has(key)).to.equal(false);
      expect(score / scale, `row ${key}`).to.be.closeTo(dot(key), 0.3);
    }
  });
});
