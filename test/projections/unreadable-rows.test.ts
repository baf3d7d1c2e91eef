import { expect } from 'chai';
import { changeViews, damageEvent } from '../support/damaged-log.js';
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
import { sample, soakIt } from '../support/soak.js';

const LISTS = ['/api/runs/', '/api/councils/', '/api/documents'];
const NO_JSON = '{"id":';

onEmbeddedLog(() =>
  describe('An unreadable stored row', () => {
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

    const changes = [
      ['runs', `UPDATE runs SET summary = '${NO_JSON}' WHERE key = 1`],
      ['blueprints', `UPDATE blueprints SET record = '7' WHERE id = (SELECT min(id) FROM blueprints)`],
      ['documents', `UPDATE documents SET record = '{"id":"x"}' WHERE id = (SELECT min(id) FROM documents)`],
    ] as const;
    for (const [table, change] of sample(changes, 1)) {
      it(`of the table ${table} makes the service rebuild the views and report one fault; lists stay the same`, async () => {
        const before = await lists();
        await whileStopped(() => changeViews(dir.path, change));
        expect(await lists()).to.deep.equal(before);
        expect(service.faults).to.have.length(1);
        await whileStopped(() => undefined);
        expect(await lists()).to.deep.equal(before);
        expect(service.faults).to.deep.equal([]);
      });
    }

    it('of a blueprint that differs from its fold is replaced after the start, and reported once', async () => {
      const before = await lists();
      await whileStopped(() =>
        changeViews(dir.path, `UPDATE blueprints SET record = replace(record, '"name":"one"', '"name":"forged"')`),
      );
      await untilTrue(async () => JSON.stringify(await lists()) === JSON.stringify(before));
      expect(service.faults).to.have.length(1);
      await whileStopped(() => undefined);
      expect(await lists()).to.deep.equal(before);
      expect(service.faults).to.deep.equal([]);
    });

    it('of an unknown run disappears with the rebuild', async () => {
      const before = await lists();
      await whileStopped(() =>
        changeViews(
          dir.path,
          `INSERT INTO runs (id, created_at, status, summary)
           VALUES ('${NO_RUN}', '2026-01-01T00:00:00.000Z', 'failed', '${NO_JSON}');
           INSERT INTO facets (key, id, created_at, is_trial, status, has_draft)
           SELECT key, id, created_at, 0, status, 0 FROM runs WHERE id = '${NO_RUN}'`,
        ),
      );
      // Several requests find the row, and the others arrive during the rebuild.
      for (const each of await Promise.all(Array.from({ length: 12 }, lists))) expect(each).to.deep.equal(before);
      expect(await lists()).to.deep.equal(before);
      expect(service.faults).to.have.length(1);
    });

    it('of a run with a corrupt record is shown as failed after the rebuild, and after a further start', async () => {
      const runId = await finished();
      const [requested] = await recordOf(service.context.log, runId);
      await whileStopped(() => {
        damageEvent(dir.path, requested?.id ?? '', ['Trees', 'Bears']);
        changeViews(dir.path, `UPDATE runs SET summary = '${NO_JSON}' WHERE id = '${runId}'`);
      });
      /** Ids of the failed runs, after a list that reads the damaged row. */
      const failed = async (): Promise<readonly string[]> => {
        await lists();
        return rest.read(await rest.get('/api/runs/?status=failed'), 200, 'history-list.json').map(({ id }) => id);
      };
      expect(await failed()).to.deep.equal([runId]);
      await whileStopped(() => undefined);
      expect(await failed()).to.deep.equal([runId]);
      rest.problem(await rest.get(`/api/runs/${runId}`), 500);
      // Damages the views again while the service knows which run is corrupt.
      changeViews(dir.path, `UPDATE runs SET summary = '${NO_JSON}'`);
      expect(await failed()).to.deep.equal([runId]);
      await whileStopped(() => undefined);
      expect(await failed()).to.deep.equal([runId]);
    });

    soakIt('does not stop the recovery of runs at the start', async () => {
      const model = scriptedModel(() => 'hold');
      await service.stop();
      await serve(model);
      const [running, paused] = [await rest.start(), await startGodRun(service.context, graphOf('write'))];
      await model.called(1);
      await pausedBefore(service.context, paused, 'write');
      await whileStopped(() => changeViews(dir.path, `UPDATE runs SET summary = '${NO_JSON}'`));
      expect(isOver(await rest.until(running, isOver))).to.equal(true);
      expect(await rest.poll(paused)).to.include({ status: 'paused' });
      const ids = JSON.parse((await rest.get('/api/runs/')).text) as readonly { id: string }[];
      expect(ids.map(({ id }) => id)).to.include.members([running, paused]);
    });

    it('that is ahead of its run does not make the run corrupt', async () => {
      const model = scriptedModel(() => 'hold');
      await service.stop();
      await serve(model);
      const [ended, running] = [await service.context.recovery.unfinished(), await rest.start()];
      const paused = await startGodRun(service.context, graphOf('write'));
      await model.called(1);
      await pausedBefore(service.context, paused, 'write');
      expect(ended).to.deep.equal([]);
      await whileStopped(() => changeViews(dir.path, `UPDATE runs SET summary = json_set(summary, '$.seq', 999)`));
      expect(await rest.until(running, isOver)).to.include({ status: 'completed' });
      for (const path of ['events', 'state', 'stream']) {
        expect((await rest.get(`/api/runs/${running}/${path}`)).status, path).to.equal(200);
      }
      expect((await rest.post(`/api/councils/run/${paused}/approve`, { action: 'approve' })).status).to.equal(200);
      expect(await rest.until(paused, isOver)).to.include({ status: 'completed' });
      expect(service.faults).to.deep.equal([]);
    });

    soakIt('of a corrupt run leaves the run corrupt', async () => {
      const runId = await finished();
      const [requested] = await recordOf(service.context.log, runId);
      await whileStopped(() => damageEvent(dir.path, requested?.id ?? '', ['Trees', 'Bears']));
      rest.problem(await rest.get(`/api/runs/${runId}/events`), 500);
      await whileStopped(() => changeViews(dir.path, `UPDATE damaged SET damage = '${NO_JSON}'`));
      rest.problem(await rest.get(`/api/runs/${runId}`), 500);
    });
  }),
);
