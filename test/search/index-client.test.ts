import { DatabaseSync } from '@photostructure/sqlite';
import { expect } from 'chai';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { FULL_TEXT_SCHEMA, fullText } from '../../src/search/rows.js';
import { OFFLINE_EMBEDDING_MODEL } from '../../src/embeddings/offline.js';
import {
  MAX_ADDED,
  type ScoredChunk,
  type NewChunk,
  type SearchIndex,
  type SearchIndexOptions,
} from '../../src/search/index-client.js';
import { onSmallDisks, smallDisk } from '../support/small-disk.js';
import { IndexFull } from '../../src/search/errors.js';
import { openSoundIndex } from '../support/filled-index.js';
import { realChunks, realQueries } from '../support/real-texts.js';
import { rejectionOf } from '../support/rejection.js';
import { seededRandom } from '../support/seeded-random.js';
import { tempDir, type TempDir } from '../support/temp-dir.js';

const SEED = Number(process.env['SEED'] ?? 20260101);
const TEXTS = realChunks(400);
const QUERIES = realQueries(TEXTS, 30, seededRandom(SEED));

describe(`Search index of chunks (SEED=${SEED})`, () => {
  let dir: TempDir;
  let index: SearchIndex | null;

  beforeEach(() => {
    dir = tempDir();
    index = null;
  });

  afterEach(async () => {
    await index?.close();
    dir.remove();
  });

  async function open(changed: Partial<SearchIndexOptions> = {}, file = 'passages.sqlite'): Promise<SearchIndex> {
    await index?.close();
    const log = { identity: 'log-1', head: '9' };
    const setup = { file: join(dir.path, file), log, model: OFFLINE_EMBEDDING_MODEL, dimensions: 768, ...changed };
    index = await openSoundIndex(setup);
    return index;
  }

  it('finds written chunks, also after it is opened again, and reports its checkpoint', async () => {
    const first = await open();
    expect(first.checkpoint).to.equal(null);
    await first.write({ added: passages('a', TEXTS), removed: [], checkpoint: '5' });
    const answers = await answersOf(first);
    expect(answers[0]).to.have.lengthOf(5);

    const again = await open();
    expect(again.checkpoint).to.equal('5');
    expect(again.count()).to.equal(256);
    expect(await answersOf(again)).to.deep.equal(answers);
  });

  it('finds the best chunks of the wanted documents, however many other documents are nearer', async () => {
    const index = await open();
    const query = 'tall oaks in the forest';
    const near = Array.from({ length: 1_000 }, (_, at) => passages(`near-${at}`, [`${query} ${at}`])).flat();
    for (let at = 0; at < near.length; at += MAX_ADDED) {
      await index.write({ added: near.slice(at, at + MAX_ADDED), removed: [], checkpoint: String(at) });
    }
    const wanted = passages('wanted', ['A house has a door.', 'An oak is in the garden.', 'Ships sail.']);
    await index.write({ added: wanted, removed: [], checkpoint: '2000' });
    const find = async (documents: readonly string[]) =>
      await index.search({ text: query, vector: null, topK: 2, documents });
    const found = await find(['wanted']);
    expect(new Set(found.map(({ document }) => document))).to.deep.equal(new Set(['wanted']));
    expect(found[0]?.text).to.equal('An oak is in the garden.');
    expect((await find(['near-7', 'nothing'])).map(({ document }) => document)).to.deep.equal(['near-7']);
    expect(await find([])).to.deep.equal([]);
  });

  it('gives the same answers after a rebuild from the same log, whatever was removed', async () => {
    const first = await open();
    await first.write({ added: passages('a', TEXTS.slice(0, 100)), removed: [], checkpoint: '1' });
    await first.write({ added: passages('b', TEXTS.slice(50, 250)), removed: [], checkpoint: '2' });
    await first.write({ added: [], removed: ['a'], checkpoint: '3' });
    await first.write({ added: passages('c', TEXTS.slice(200)), removed: [], checkpoint: '4' });
    const answers = await answersOf(first);

    const anew = await open({}, 'anew.sqlite');
    for (const part of inParts(passages('b', TEXTS.slice(50, 250)))) {
      await anew.write({ added: part, removed: [], checkpoint: '2' });
    }
    for (const part of inParts(passages('c', TEXTS.slice(200)))) {
      await anew.write({ added: part, removed: [], checkpoint: '4' });
    }
    expect(await answersOf(anew)).to.deep.equal(answers);
  });

  it('finds no chunk of a removed document', async () => {
    const first = await open();
    await first.write({ added: [...passages('a', TEXTS.slice(0, 50)), ...passages('b', TEXTS.slice(0, 50))], ...AT_1 });
    await first.write({ added: [], removed: ['a', 'unknown'], checkpoint: '2' });
    for (const opened of [() => Promise.resolve(first), open]) {
      const each = await opened();
      const found = await Promise.all(QUERIES.map((text) => each.search({ text, vector: null, topK: 100 })));
      expect(new Set(found.flat().map(({ document }) => document))).to.deep.equal(new Set(['b']));
      expect(each.count()).to.equal(50);
    }
  });

  it('replaces a chunk with the same number, and removes before it adds', async () => {
    const first = await open();
    await first.write({ added: passages('a', ['a sauna by the lake', 'bicycle lanes']), ...AT_1 });
    await first.write({ added: passages('a', ['a theatre in the park']), removed: [], checkpoint: '2' });
    expect(await textsOf(first, 'sauna lake')).to.not.include('a sauna by the lake');
    await first.write({ added: passages('a', ['a harbour', 'a harbour wall']), removed: ['a'], checkpoint: '3' });
    expect(await textsOf(first, 'harbour')).to.deep.equal(['a harbour', 'a harbour wall']);
    expect(first.count()).to.equal(2);
  });

  it('shows the changes of several writes together with the last of them', async () => {
    const first = await open();
    const hidden = { removed: ['a'], checkpoint: null };
    await first.write({ added: passages('a', ['a sauna by the lake']), ...hidden });
    expect([first.count(), await textsOf(first, 'sauna')]).to.deep.equal([0, []]);
    await first.write({ added: [passage('a', 1, 'a sauna in the park')], removed: [], checkpoint: '1' });
    expect([...(await textsOf(first, 'sauna'))].sort()).to.deep.equal(['a sauna by the lake', 'a sauna in the park']);

    await first.write({ added: passages('a', ['a sauna on the roof']), ...hidden });
    for (const opened of [() => Promise.resolve(first), open]) {
      const each = await opened();
      expect(each.count()).to.equal(2);
      expect([...(await textsOf(each, 'sauna'))].sort()).to.deep.equal(['a sauna by the lake', 'a sauna in the park']);
    }
    const again = await open();
    await again.write({ added: passages('a', ['a sauna in a forest', 'a sauna in a cellar']), ...hidden });
    await again.write({ added: passages('a', ['a sauna on the roof']), ...hidden });
    await again.write({ added: [], removed: [], checkpoint: '2' });
    for (const opened of [() => Promise.resolve(again), open]) {
      const each = await opened();
      expect([each.count(), await textsOf(each, 'sauna')]).to.deep.equal([1, ['a sauna on the roof']]);
    }
  });

  it('writes a change and its checkpoint completely or not at all', async () => {
    const first = await open();
    await first.write({ added: passages('a', ['a sauna']), ...AT_1 });
    const wrong = { ...passage('b', 0, 'a harbour'), vector: new Float32Array(7) };
    const change = { added: [passage('b', 1, 'a harbour'), wrong], removed: ['a'], checkpoint: '2' };
    expect(await messageOf(first.write(change))).to.match(/7 dimensions: those of "offline-hash-2" have 768/);
    for (const opened of [() => Promise.resolve(first), open]) {
      const each = await opened();
      expect(await textsOf(each, 'sauna harbour')).to.deep.equal(['a sauna']);
      expect(each.count()).to.equal(1);
    }
    expect(index?.checkpoint).to.equal('1');
  });

  const others: readonly (readonly [string, Partial<SearchIndexOptions>])[] = [
    ['another log', { log: { identity: 'log-2', head: '9' } }],
    ['a log that ends before it', { log: { identity: 'log-1', head: '0' } }],
    ['an empty log', { log: { identity: 'log-1', head: null } }],
    ['another model', { model: 'gemini-embedding-001' }],
    ['other dimensions', { dimensions: 512, model: OFFLINE_EMBEDDING_MODEL }],
  ];
  for (const [what, changed] of others) {
    it(`is empty for ${what}`, async () => {
      await (await open()).write({ added: passages('a', ['a sauna']), ...AT_1 });
      const anew = await open(changed);
      expect([anew.checkpoint, anew.count()]).to.deep.equal([null, 0]);
    });
  }

  it('is recreated if a row is unreadable', async () => {
    await (await open()).write({ added: passages('a', ['a sauna']), ...AT_1 });
    await index?.close();
    const database = new DatabaseSync(join(dir.path, 'passages.sqlite'));
    database.exec('UPDATE codes SET code = 7');
    database.close();
    const anew = await open();
    expect([anew.checkpoint, anew.count()]).to.deep.equal([null, 0]);
  });

  it('is recreated if a directory is in its place', async () => {
    mkdirSync(join(dir.path, 'passages.sqlite'));
    expect((await open()).checkpoint).to.equal(null);
  });

  onSmallDisks(() =>
    it('keeps its file on a full disk, answers searches, and is written once there is room', async () => {
      const disk = smallDisk(4 * 1024 * 1024);
      try {
        const log = { identity: 'log-1', head: '9' };
        const file = join(disk.path, 'passages.sqlite');
        index = await openSoundIndex({ file, log, model: OFFLINE_EMBEDDING_MODEL, dimensions: 768 });
        await index.write({ added: passages('a', ['a sauna']), ...AT_1 });
        disk.fill();
        const more = { added: passages('b', TEXTS.slice(0, 200)), removed: [], checkpoint: '2' };
        expect(await rejectionOf(index.write(more))).to.be.instanceOf(IndexFull);
        expect(await textsOf(index, 'sauna')).to.deep.equal(['a sauna']);
        disk.clear();
        await index.write(more);
        expect(index.count()).to.equal(201);
        await index.close();
      } finally {
        disk.remove();
      }
    }),
  );

  it('ranks by words alone if a query lacks an external vector, and adds no chunk without one', async () => {
    const other = await open({ model: 'elsewhere', dimensions: 8 });
    const at = (...numbers: readonly number[]): Float32Array =>
      Float32Array.from({ length: 8 }, (_, i) => numbers[i] ?? 0);
    const added = [
      { ...passage('a', 0, 'a sauna by the lake'), vector: at(1, 0.1) },
      { ...passage('a', 1, 'steam and birch'), vector: at(0.9, 0.2) },
      { ...passage('a', 2, 'bicycle lanes'), vector: at(-1) },
    ];
    await other.write({ added, ...AT_1 });
    expect(await textsOf(other, 'sauna')).to.deep.equal(['a sauna by the lake']);
    const near = await other.search({ text: 'hot room', vector: at(1, 0.12), topK: 3 });
    expect(near.map(({ chunk }) => chunk)).to.deep.equal([0, 1]);
    const both = await other.search({ text: 'birch', vector: at(1, 0.1), topK: 3 });
    expect(
      both.map(({ chunk }) => chunk),
      'what both rankings have goes first',
    ).to.deep.equal([1, 0]);
    expect(await messageOf(other.write({ added: passages('b', ['x']), ...AT_1 }))).to.match(/without its vector/);
  });

  it('answers searches while it is written', async () => {
    const busy = await open();
    await busy.write({ added: passages('a', ['a sauna by the lake']), ...AT_1 });
    const writer = { isBusy: true };
    const writing = (async () => {
      for (let turn = 0; turn < 8; turn += 1) {
        await busy.write({ added: passages(`b${turn}`, TEXTS.slice(turn * 40, turn * 40 + 40)), ...AT_1 });
      }
      writer.isBusy = false;
    })();
    let answered = 0;
    while (writer.isBusy) {
      expect(await textsOf(busy, 'sauna by the lake')).to.include('a sauna by the lake');
      answered += 1;
      await nextTurn();
    }
    await writing;
    expect(answered).to.be.at.least(3);
  });

  const hostile = [
    '"',
    '" OR "',
    'NEAR(a b)',
    'text:sauna',
    '-sauna',
    'sauna*',
    '^sauna',
    "'; DROP TABLE words; --",
    '\0',
  ];
  it('reads any text as words, never as a query language', async () => {
    const first = await open();
    const texts = [...hostile, 'a sauna\0 and more', '🧖‍♀️ \u{10FFFF}\u202E', 'x'.repeat(50_000), ' '];
    await first.write({ added: passages('a', texts), ...AT_1 });
    for (const text of [...texts, 'x '.repeat(50_000), `${'word '.repeat(20_000)}sauna`, '']) {
      await first.search({ text, vector: null, topK: 20 });
    }
    expect(await textsOf(first, '"SAUNA" and NEAR(more')).to.include('a sauna\0 and more');
    await first.write({ added: [], removed: ['a'], checkpoint: '2' });
    expect(await textsOf(first, 'sauna')).to.deep.equal([]);
  });

  it('ranks by the rarer words of a query alone once 10,000 chunks hold the others', () => {
    const database = new DatabaseSync(':memory:');
    database.exec(FULL_TEXT_SCHEMA);
    const words = fullText(database);
    database.exec('BEGIN');
    for (let key = 1; key <= 10_001; key += 1)
      words.add(key, key % 2_000 === 0 ? 'a common, rare word' : 'common words');
    database.exec('COMMIT');
    expect(words.nearest('common rare', 10).map(({ key }) => key)).to.deep.equal([2_000, 4_000, 6_000, 8_000, 10_000]);
    expect(words.nearest('common', 10)).to.deep.equal([]);
    database.close();
  });

  it('refuses large writes and too many searches, and stops with its signal and its close', async () => {
    const first = await open();
    const many = passages(
      'a',
      Array.from({ length: MAX_ADDED + 1 }, () => 'x'),
    );
    expect(await messageOf(first.write({ added: many, ...AT_1 }))).to.match(/257 chunks at once: at most 256/);
    const searches = Array.from({ length: 101 }, () => first.search({ text: 'x', vector: null, topK: 1 }));
    const settled = await Promise.allSettled(searches);
    expect(settled.filter(({ status }) => status === 'rejected')).to.have.lengthOf(1);
    const stop = new AbortController();
    const aborted = messageOf(first.search({ text: 'x', vector: null, topK: 1 }, { signal: stop.signal }));
    stop.abort(new Error('No longer wanted'));
    expect(await aborted).to.equal('No longer wanted');
    await first.close();
    await first.close();
    expect(await messageOf(first.search({ text: 'x', vector: null, topK: 1 }))).to.match(/the service is stopping/);
  });
});

const AT_1 = { removed: [], checkpoint: '1' };

/** The error with which a promise is rejected. */
async function messageOf(promise: Promise<unknown>): Promise<string> {
  const error = await rejectionOf(promise);
  return error instanceof Error ? error.message : String(error);
}

function passage(document: string, chunk: number, text: string): NewChunk {
  return { document, chunk, page: 1, text, vector: null };
}

function passages(document: string, texts: readonly string[]): readonly NewChunk[] {
  return texts.map((text, chunk) => passage(document, chunk, text)).slice(0, texts === TEXTS ? MAX_ADDED : undefined);
}

function inParts(all: readonly NewChunk[]): readonly (readonly NewChunk[])[] {
  return [all.slice(0, 70), all.slice(70)];
}

async function textsOf(index: SearchIndex, text: string): Promise<readonly string[]> {
  return (await index.search({ text, vector: null, topK: 5 })).map((each) => each.text);
}

function answersOf(index: SearchIndex): Promise<readonly (readonly ScoredChunk[])[]> {
  return Promise.all(QUERIES.map((text) => index.search({ text, vector: null, topK: 5 })));
}
