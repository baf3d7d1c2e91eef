import { expect } from 'chai';
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { nodeSystem } from '../../src/system/system.js';
import { cut, damageWhileOpen, pagesOf, rangesOf } from '../support/damaged-file.js';
import { restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { seededRandom } from '../support/seeded-random.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { idOf, pdfWith, uploaded } from '../support/upload-client.js';
import { IS_SOAK, sample } from '../support/soak.js';

interface Size {
  readonly documents: number;
  /** Pages of a document: each is one chunk. */
  readonly pages: number;
  /** One of this many pages of the file is damaged separately. */
  readonly every: number;
}

const SIZES: Readonly<Record<'small' | 'large', Size>> = {
  small: { documents: 2, pages: 2, every: IS_SOAK ? 1 : 96 },
  // Tables and indexes with interior pages.
  large: { documents: 3, pages: 60, every: 1 },
};

const LATE = pdfWith(['A late leaf falls into wave3.']);
const QUERIES = ['wave3', 'leaf wood', 'd0p1w5', 'stones under water'];
const FILE = join('views', 'passages.sqlite');

/** A page of words, most of which no other page has. */
function pageOf(document: number, page: number): readonly string[] {
  return Array.from({ length: 12 }, (_, line) =>
    [`wave${(page + line) % 7}`, 'leaf', ...[0, 1, 2].map((at) => `d${document}p${page}w${line + at}`)].join(' '),
  );
}

describe('A service with a damaged search index of documents', () => {
  const system = nodeSystem();
  let dir: TempDir;

  before(() => {
    dir = tempDir();
  });
  after(() => dir.remove());

  async function filled(path: string, { documents, pages }: Size): Promise<void> {
    await withService(path, async ({ url }) => {
      for (let document = 0; document < documents; document += 1) {
        const pdf = pdfWith(...Array.from({ length: pages }, (_, page) => pageOf(document, page)));
        await uploaded(url, pdf, `${document}.pdf`);
      }
    });
  }

  /** The search results before and after an upload and its deletion, because some damage shows only on a write. */
  async function answersOf(url: string): Promise<readonly string[]> {
    const rest = restClient(url);
    const found = (): Promise<readonly string[]> =>
      Promise.all(
        QUERIES.map(async (query) => {
          const { status, text } = await rest.get(`/api/documents/search?top_k=20&q=${encodeURIComponent(query)}`);
          return `${query} ${status} ${text}`;
        }),
      );
    const before = await found();
    await uploaded(url, LATE, 'late.pdf');
    const between = await found();
    expect((await rest.send('DELETE', `/api/documents/${idOf(LATE)}`)).status).to.equal(204);
    return [...before, ...between, ...(await found())];
  }

  async function withService<T>(path: string, act: (service: RunningService) => Promise<T>): Promise<T> {
    const service = await startService({
      dataDir: path,
      embeddings: null,
      // The service may recreate the file again at once.
      system: { ...system, after: (ms, call) => system.after(ms === 30_000 ? 1 : ms, call) },
    });
    try {
      return await act(service);
    } finally {
      await service.stop();
    }
  }

  for (const [name, size] of sample(Object.entries(SIZES), 1)) {
    it(`finds the same chunks after any part of a ${name} index file was damaged before the start`, async () => {
      const [whole, copy] = [join(dir.path, name), join(dir.path, 'copy')];
      await filled(whole, size);
      cpSync(whole, copy, { recursive: true });
      const told = await withService(copy, ({ url }) => answersOf(url));
      const index = readFileSync(join(whole, FILE));
      const random = seededRandom(9);
      const damages = [...pagesOf(index.length, size.every), ...rangesOf(index.length), cut(index.length - 1_000)];
      for (const { title, apply } of damages) {
        rmSync(copy, { recursive: true, force: true });
        cpSync(whole, copy, { recursive: true });
        writeFileSync(join(copy, FILE), apply(Buffer.from(index), random));
        expect(await withService(copy, ({ url }) => answersOf(url)), title).to.deep.equal(told);
      }
    });

    it(`finds the same chunks after any part of a ${name} index file was damaged while it runs`, async () => {
      const path = join(dir.path, `open-${name}`);
      await filled(path, size);
      const file = join(path, FILE);
      const told = await withService(path, ({ url }) => answersOf(url));
      const { length } = readFileSync(file);
      await damageWhileOpen([...pagesOf(length, size.every), ...rangesOf(length)], {
        file,
        seed: 10,
        withService: (act) => withService(path, act),
        check: async ({ url }, title) => expect(await answersOf(url), title).to.deep.equal(told),
      });
    });
  }
});
