import { expect } from 'chai';
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { nodeSystem } from '../../src/system/system.js';
import { cut, damageWhileOpen, pagesOf, rangesOf } from '../support/damaged-file.js';
import { graphOf } from '../support/given.js';
import { pausedBefore, startGodRun } from '../support/god-run.js';
import { instantModel } from '../support/instant-model.js';
import type { RestClient } from '../support/rest-client.js';
import { isOver, restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { seededRandom } from '../support/seeded-random.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { onEmbeddedLog } from '../support/test-event-store.js';
import { pdfWith, uploaded } from '../support/upload-client.js';
import { IS_SOAK, sample } from '../support/soak.js';

interface Size {
  readonly runs: number;
  /** The number of words in a topic: enough for overflow pages of its row. */
  readonly words: number;
  /** One of this many pages is damaged separately. */
  readonly every: number;
}

const SIZES: Readonly<Record<'small' | 'large', Size>> = {
  small: { runs: 4, words: 3, every: IS_SOAK ? 1 : 48 },
  // Tables and indexes with interior pages.
  large: { runs: 60, words: 400, every: 1 },
};

/** Words, most of which no other run has. */
function topicOf(run: number, words: number): string {
  return Array.from({ length: words }, (_, at) => (at === 0 ? `wave${run % 7}` : `w${run}x${at}`)).join(' ');
}

onEmbeddedLog(() =>
  describe('A service with damaged stored views', () => {
    const system = nodeSystem();
    let dir: TempDir;

    before(() => {
      dir = tempDir();
    });
    after(() => dir.remove());

    const serve = (dataDir: string): Promise<RunningService> =>
      startService({
        dataDir,
        model: instantModel(),
        // The service may recreate the file again at once.
        system: { ...system, after: (ms, call) => system.after(ms === 30_000 ? 1 : ms, call) },
      });

    /** A folder with ended and waiting runs, councils and documents, and the requests whose answers must not change. */
    async function filled(name: string, { runs, words }: Size): Promise<readonly string[]> {
      const path = join(dir.path, name);
      const service = await serve(path);
      const rest = restClient(service.url);
      const ids: string[] = [];
      for (let run = 0; run < runs; run += 1) ids.push(await rest.start(topicOf(run, words)));
      const paused = await startGodRun(service.context, graphOf('write'));
      await pausedBefore(service.context, paused, 'write');
      for (const id of ids) await rest.until(id, isOver);
      for (const id of ['one', 'two']) {
        rest.read(await rest.post('/api/councils/', { id, name: id, nodes: [{ id: 'a' }] }), 201, 'blueprint.json');
        await uploaded(service.url, pdfWith([id]), `${id}.pdf`);
      }
      await service.stop();
      const shown = [ids[0], ids.at(-1)];
      return [
        ...[
          '',
          '?limit=200',
          '?status=paused',
          '?q=wave3',
          '?q=w2x2',
          '?q=draft&sort=-score',
          '?sort=waiting&limit=3',
        ].map((query) => `/api/runs/${query}`),
        ...['/api/councils/', '/api/documents', '/api/approvals'],
        ...[...shown, paused].flatMap((id) => [`/api/councils/run/${id}`, `/api/runs/${id}`, `/api/runs/${id}/verify`]),
      ];
    }

    async function answersOf(rest: RestClient, paths: readonly string[]): Promise<readonly string[]> {
      const answers: string[] = [];
      for (const path of paths) {
        const { status, text } = await rest.get(path);
        answers.push(`${path} ${status} ${text}`);
      }
      return answers;
    }

    async function withService<T>(path: string, act: (service: RunningService) => Promise<T>): Promise<T> {
      const service = await serve(path);
      try {
        return await act(service);
      } finally {
        await service.stop();
      }
    }

    for (const [name, size] of sample(Object.entries(SIZES), 1)) {
      it(`gives the same answers after any part of a ${name} views file was damaged before the start`, async () => {
        const paths = await filled(name, size);
        const whole = join(dir.path, name);
        const copy = join(dir.path, 'copy');
        const told = await withService(whole, ({ url }) => answersOf(restClient(url), paths));
        const views = readFileSync(join(whole, 'views', 'views.sqlite'));
        const random = seededRandom(7);
        for (const { title, apply } of [
          ...pagesOf(views.length, size.every),
          ...rangesOf(views.length),
          cut(views.length - 1_000),
        ]) {
          rmSync(copy, { recursive: true, force: true });
          cpSync(whole, copy, { recursive: true });
          writeFileSync(join(copy, 'views', 'views.sqlite'), apply(Buffer.from(views), random));
          const again = await withService(copy, ({ url }) => answersOf(restClient(url), paths));
          again.forEach((answer, at) => expect(answer, title).to.equal(told[at]));
        }
      });
    }

    it('gives the same answers after any part of the file was damaged while it runs', async () => {
      const paths = await filled('open', SIZES.small);
      const path = join(dir.path, 'open');
      const file = join(path, 'views', 'views.sqlite');
      const told = await withService(path, ({ url }) => answersOf(restClient(url), paths));
      const { length } = readFileSync(file);
      await damageWhileOpen([...pagesOf(length, IS_SOAK ? 1 : 48), ...rangesOf(length)], {
        file,
        seed: 8,
        withService: (act) => withService(path, act),
        check: async ({ url }, title) => expect(await answersOf(restClient(url), paths), title).to.deep.equal(told),
      });
    });
  }),
);
