import { expect } from 'chai';
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { nodeSystem } from '../../src/system/system.js';
import { cut, damageWhileOpen, pagesOf, rangesOf } from '../support/damaged-file.js';
import { graphOf } from '../support/given.js';
import { pausedBefore, startGodRun } from '../support/god-run.js';
import { instantModel } from '../support/instant-model.js';
import { isOver, restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { seededRandom } from '../support/seeded-random.js';
import { IS_SOAK, sample } from '../support/soak.js';
import { tempDir } from '../support/temp-dir.js';
import { onEmbeddedLog } from '../support/test-event-store.js';
import { idOf, pdfWith, uploaded } from '../support/upload-client.js';

/** The answers of a service that must not change. */
type Answers = (url: string) => Promise<readonly string[]>;

interface DamagedFile {
  readonly title: string;
  readonly path: string;
  /** One of this many pages of the small file is damaged separately. The large one has interior pages. */
  readonly every: number;
  readonly fill: (service: RunningService, size: 'small' | 'large') => Promise<Answers>;
}

const FILES: readonly DamagedFile[] = [
  { title: 'views', path: join('views', 'views.sqlite'), every: 48, fill: fillViews },
  { title: 'search index of documents', path: join('views', 'passages.sqlite'), every: 96, fill: fillIndex },
];

const everyOf = ({ every }: DamagedFile, size: 'small' | 'large'): number => (IS_SOAK || size === 'large' ? 1 : every);

onEmbeddedLog(() => {
  for (const damaged of FILES) {
    describe(`A service with a damaged file of its ${damaged.title}`, () => {
      const system = nodeSystem();
      let dir: ReturnType<typeof tempDir>;

      before(() => {
        dir = tempDir();
      });
      after(() => dir.remove());

      async function withService<T>(dataDir: string, act: (service: RunningService) => Promise<T>): Promise<T> {
        const service = await startService({
          ...{ dataDir, model: instantModel(), embeddings: null },
          // The service may recreate the file again at once.
          system: { ...system, after: (ms, call) => system.after(ms === 30_000 ? 1 : ms, call) },
        });
        try {
          return await act(service);
        } finally {
          await service.stop();
        }
      }

      for (const size of sample(['small', 'large'] as const, 1)) {
        it(`gives the same answers after any part of a ${size} file was damaged before the start`, async () => {
          const [whole, copy] = [join(dir.path, size), join(dir.path, 'copy')];
          const answers = await withService(whole, (service) => damaged.fill(service, size));
          const answersOfCopy = (spoil: () => void): Promise<readonly string[]> => {
            rmSync(copy, { recursive: true, force: true });
            cpSync(whole, copy, { recursive: true });
            spoil();
            return withService(copy, ({ url }) => answers(url));
          };
          const sound = await answersOfCopy(() => undefined);
          const bytes = readFileSync(join(whole, damaged.path));
          const random = seededRandom(7);
          const pages = pagesOf(bytes.length, everyOf(damaged, size));
          for (const { title, apply } of [...pages, ...rangesOf(bytes.length), cut(bytes.length - 1_000)]) {
            const spoil = (): void => writeFileSync(join(copy, damaged.path), apply(Buffer.from(bytes), random));
            expect(await answersOfCopy(spoil), title).to.deep.equal(sound);
          }
        });
      }

      it('gives the same answers after any part of the file was damaged while it runs', async () => {
        const path = join(dir.path, 'open');
        const answers = await withService(path, (service) => damaged.fill(service, 'small'));
        const sound = await withService(path, ({ url }) => answers(url));
        const file = join(path, damaged.path);
        const { length } = readFileSync(file);
        await damageWhileOpen([...pagesOf(length, everyOf(damaged, 'small')), ...rangesOf(length)], {
          file,
          seed: 8,
          withService: (act) => withService(path, act),
          check: async ({ url }, title) => expect(await answers(url), title).to.deep.equal(sound),
        });
      });
    });
  }
});

/** Fills a folder with ended and waiting runs, councils and documents. */
async function fillViews({ url, context }: RunningService, size: 'small' | 'large'): Promise<Answers> {
  const rest = restClient(url);
  // Enough words in a topic for overflow pages of its row, most of which no other run has.
  const [runs, words] = size === 'small' ? [4, 3] : [60, 400];
  const ids: string[] = [];
  for (let run = 0; run < runs; run += 1) {
    const rare = Array.from({ length: words - 1 }, (_, at) => `w${run}x${at + 1}`);
    ids.push(await rest.start([`wave${run % 7}`, ...rare].join(' ')));
  }
  const paused = await startGodRun(context, graphOf('write'));
  await pausedBefore(context, paused, 'write');
  for (const id of ids) await rest.until(id, isOver);
  for (const id of ['one', 'two']) {
    rest.read(await rest.post('/api/councils/', { id, name: id, nodes: [{ id: 'a' }] }), 201, 'blueprint.json');
    await uploaded(url, pdfWith([id]), `${id}.pdf`);
  }
  const searches = ['?q=wave3', '?q=w2x2', '?q=draft&sort=-score', '?sort=waiting&limit=3'];
  const paths = [
    ...['', '?limit=200', '?status=paused', ...searches].map((query) => `/api/runs/${query}`),
    ...['/api/councils/', '/api/documents', '/api/approvals'],
    ...[ids[0], ids.at(-1), paused].flatMap((id) => [
      `/api/councils/run/${id}`,
      `/api/runs/${id}`,
      `/api/runs/${id}/verify`,
    ]),
  ];
  return (at) => answersAt(at, paths);
}

const LATE = pdfWith(['A late leaf falls into wave3.']);
const QUERIES = ['wave3', 'leaf wood', 'd0p1w5', 'stones under water'];

/** Fills a folder with documents. Answers come before and after a change, because some damage shows only on a write. */
async function fillIndex({ url }: RunningService, size: 'small' | 'large'): Promise<Answers> {
  const [documents, pages] = size === 'small' ? [2, 2] : [3, 60];
  for (let document = 0; document < documents; document += 1) {
    const text = Array.from({ length: pages }, (_, page) => pageOf(document, page));
    await uploaded(url, pdfWith(...text), `${document}.pdf`);
  }
  const searches = QUERIES.map((query) => `/api/documents/search?top_k=20&q=${encodeURIComponent(query)}`);
  return async (at) => {
    const before = await answersAt(at, searches);
    await uploaded(at, LATE, 'late.pdf');
    const between = await answersAt(at, searches);
    expect((await restClient(at).send('DELETE', `/api/documents/${idOf(LATE)}`)).status).to.equal(204);
    return [...before, ...between, ...(await answersAt(at, searches))];
  };
}

/** A page of words, most of which no other page has. */
function pageOf(document: number, page: number): readonly string[] {
  return Array.from({ length: 12 }, (_, line) =>
    [`wave${(page + line) % 7}`, 'leaf', ...[0, 1, 2].map((at) => `d${document}p${page}w${line + at}`)].join(' '),
  );
}

async function answersAt(url: string, paths: readonly string[]): Promise<readonly string[]> {
  const answers: string[] = [];
  for (const path of paths) {
    const { status, text } = await restClient(url).get(path);
    answers.push(`${path} ${status} ${text}`);
  }
  return answers;
}
