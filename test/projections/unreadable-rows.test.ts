import { expect } from 'chai';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { elementAt } from '../../src/system/element.js';
import { changeViews, damageEvent, flipBit, forgeViews } from '../support/damaged-log.js';
import { graphOf } from '../support/given.js';
import { pausedBefore, startGodRun } from '../support/god-run.js';
import { recordOf } from '../support/record-of.js';
import type { RestClient } from '../support/rest-client.js';
import { isOver, NO_RUN, restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { councilScript, scriptedModel } from '../support/scripted-model.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { onEmbeddedLog } from '../support/test-event-store.js';
import { untilTrue } from '../support/until-true.js';
import { pdfWith, uploaded } from '../support/upload-client.js';

const LISTS = ['/api/runs/', '/api/councils/', '/api/documents'];
const NO_JSON = '{"id":';

/** The first row of a list, as it is shown. */
interface Row {
  readonly id: string;
  /** What the list is by. */
  readonly at: string;
}

/** The texts between which a byte stands in the file: the one that is changed is the first of the second. */
type Place = readonly [string, string];

const FLIPPED: readonly (readonly [string, (run: Row, blueprint: Row, document: Row) => readonly Place[]])[] = [
  [
    'its text',
    () => [
      ['"finalDraft":"', ''],
      ['"name":"', ''],
      ['"filename":"', ''],
    ],
  ],
  ['its number', () => [['"seq":', '']]],
  ['its status', (run) => [[run.id + run.at, 'completed{']]],
  [
    'its id',
    (run, ...others) => [
      ['', `${run.id}${run.at}completed{`],
      ...others.map(({ id, at }): Place => ['', `${id}${at}{`]),
    ],
  ],
  [
    'its time',
    (run, ...others) => [[run.id, `${run.at}completed{`], ...others.map(({ id, at }): Place => [id, `${at}{`])],
  ],
  ['the index of its list', (_, ...others) => others.map(({ id, at }): Place => [at, id])],
];

function firstOf(lists: readonly string[], list: number): Row {
  const [row = {}] = JSON.parse(elementAt(lists, list)) as readonly Readonly<Record<string, string>>[];
  return { id: row['id'] ?? '', at: row['created_at'] ?? row['updatedAt'] ?? row['ingested_at'] ?? '' };
}

onEmbeddedLog(() =>
  describe('A stored row that cannot be read', () => {
    let dir: TempDir;
    let service: RunningService;
    let rest: RestClient;

    const serve = async (model = scriptedModel(councilScript([9]))): Promise<void> => {
      service = await startService({ dataDir: dir.path, model });
      rest = restClient(service.url);
    };
    const whileStopped = async (change: () => void): Promise<void> => {
      await service.stop();
      change();
      await serve();
    };
    const lists = (): Promise<readonly string[]> =>
      Promise.all(
        LISTS.map(async (path) => {
          const { status, text } = await rest.get(path);
          expect(status, `${path}: ${text}`).to.equal(200);
          return text;
        }),
      );
    const finished = async (): Promise<string> => {
      const runId = await rest.start();
      await rest.until(runId, isOver);
      return runId;
    };

    before(async () => {
      dir = tempDir();
      await serve();
      await finished();
      await finished();
      for (const id of ['one', 'two']) {
        rest.read(await rest.post('/api/councils/', { id, name: id, nodes: [{ id: 'a' }] }), 201, 'blueprint.json');
        await uploaded(service.url, pdfWith([id]), `${id}.pdf`);
      }
    });
    after(async () => {
      await service.stop();
      dir.remove();
    });

    for (const [what, text] of [
      ['no JSON', NO_JSON],
      ['a number', '7'],
      ['another record', '{"id":"x"}'],
    ] as const) {
      it(`that holds ${what} is rebuilt from the log, reported once, and costs no list anything`, async () => {
        const told = await lists();
        await whileStopped(() => {
          changeViews(dir.path, `UPDATE runs SET summary = '${text}' WHERE key = 1`);
          for (const table of ['blueprints', 'documents']) {
            changeViews(dir.path, `UPDATE ${table} SET record = '${text}' WHERE id = (SELECT min(id) FROM ${table})`);
          }
        });
        expect(await lists()).to.deep.equal(told);
        expect(service.faults).to.have.length(3);
        expect(String(Reflect.get(service.faults[0] ?? {}, 'err'))).to.match(/The stored row of .* cannot be read/);
        expect(await lists()).to.deep.equal(told);
        await whileStopped(() => undefined);
        expect(await lists()).to.deep.equal(told);
        expect(service.faults).to.deep.equal([]);
      });
    }

    it('of a blueprint that is not its fold is replaced after the start, and reported once', async () => {
      const told = await lists();
      await whileStopped(() =>
        forgeViews(dir.path, `UPDATE blueprints SET record = replace(record, '"name":"one"', '"name":"forged"')`),
      );
      await untilTrue(async () => JSON.stringify(await lists()) === JSON.stringify(told));
      expect(service.faults).to.have.length(1);
      await whileStopped(() => undefined);
      expect(await lists()).to.deep.equal(told);
      expect(service.faults).to.deep.equal([]);
    });

    for (const [what, placesOf] of FLIPPED) {
      it(`for a bit is flipped in ${what} is told, and never served`, async () => {
        const told = await lists();
        const [run, blueprint, document] = [firstOf(told, 0), firstOf(told, 1), firstOf(told, 2)];
        const path = `/api/runs/${run.id}`;
        const polled = await rest.get(path);
        await whileStopped(() => {
          for (const [before, text] of placesOf(run, blueprint, document)) {
            flipBit(dir.path, before + text, before.length);
          }
        });
        expect((await rest.get(path)).text).to.equal(polled.text);
        await untilTrue(async () => JSON.stringify(await lists()) === JSON.stringify(told));
        expect(service.faults.length).to.be.at.least(1);
        expect(await lists()).to.deep.equal(told);
      });
    }

    it('is left out of the list, and reported once, when the log has no such run', async () => {
      const told = await lists();
      await whileStopped(() =>
        changeViews(
          dir.path,
          `INSERT INTO runs (id, created_at, status, summary, checksum)
           VALUES ('${NO_RUN}', '2026-01-01T00:00:00.000Z', 'failed', '${NO_JSON}', 0);
           INSERT INTO facets (key, id, created_at, status, has_draft)
           SELECT key, id, created_at, status, 0 FROM runs WHERE id = '${NO_RUN}'`,
        ),
      );
      // Several find it, and the others ask while the views are begun anew.
      for (const each of await Promise.all(Array.from({ length: 12 }, lists))) expect(each).to.deep.equal(told);
      expect(await lists()).to.deep.equal(told);
      expect(service.faults).to.have.length(1);
      await whileStopped(() => rmSync(join(dir.path, 'views'), { recursive: true }));
    });

    it('is left out of the list when the record of its run is damaged too', async () => {
      const told = await lists();
      const runId = await finished();
      const [requested] = await recordOf(service.engine.log, runId);
      await whileStopped(() => {
        damageEvent(dir.path, requested?.id ?? '', ['Trees', 'Bears']);
        changeViews(dir.path, `UPDATE runs SET summary = '${NO_JSON}' WHERE id = '${runId}'`);
      });
      expect(await lists()).to.deep.equal(told);
      rest.problem(await rest.get(`/api/runs/${runId}`), 500);
    });

    it('keeps no run from being taken up at the start', async () => {
      const model = scriptedModel(() => 'hold');
      await service.stop();
      await serve(model);
      const [running, paused] = [await rest.start(), await startGodRun(service.engine, graphOf('write'))];
      await model.called(1);
      await pausedBefore(service.engine, paused, 'write');
      await whileStopped(() => changeViews(dir.path, `UPDATE runs SET summary = '${NO_JSON}'`));
      expect(isOver(await rest.until(running, isOver))).to.equal(true);
      expect(await rest.poll(paused)).to.include({ status: 'paused' });
      const ids = JSON.parse((await rest.get('/api/runs/')).text) as readonly { id: string }[];
      expect(ids.map(({ id }) => id)).to.include.members([running, paused]);
    });

    it('does not make a damaged run a sound one when it is what is noted of the damage', async () => {
      const runId = await finished();
      const [requested] = await recordOf(service.engine.log, runId);
      await whileStopped(() => damageEvent(dir.path, requested?.id ?? '', ['Trees', 'Bears']));
      rest.problem(await rest.get(`/api/runs/${runId}/events`), 500);
      await whileStopped(() => changeViews(dir.path, `UPDATE damaged SET damage = '${NO_JSON}'`));
      rest.problem(await rest.get(`/api/runs/${runId}`), 500);
    });
  }),
);
