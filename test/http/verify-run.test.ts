import { expect } from 'chai';
import { nodeSystem } from '../../src/system/system.js';
import { GENESIS_HASH, sealEvents } from '../../src/eventsourcing/hash-chain.js';
import type { Verification } from '../../src/generated/schemas.js';
import { runStream } from '../../src/run/events.js';
import { changeViews, damageEvent, dropEvent } from '../support/damaged-log.js';
import { graphOf } from '../support/given.js';
import { pausedBefore, startGodRun } from '../support/god-run.js';
import { runRequest } from '../support/open-engine.js';
import { recordOf } from '../support/record-of.js';
import type { RestClient } from '../support/rest-client.js';
import { isOver, NO_RUN, restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { councilScript, scriptedModel } from '../support/scripted-model.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { onEmbeddedLog } from '../support/test-event-store.js';
import { sample } from '../support/soak.js';

const { sha256, uuid } = nodeSystem();
const sealing = { at: '2026-01-01T00:00:00.000Z', nextId: uuid, sha256, instanceId: 'test' };
const BEGINNING = { seq: -1, hash: GENESIS_HASH };
const NONE = { first_difference: null, valid: true };

describe('GET /api/runs/{run_id}/verify', () => {
  let dir: TempDir;
  let service: RunningService;
  let rest: RestClient;

  const serve = async (): Promise<void> => {
    service = await startService({ dataDir: dir.path, model: scriptedModel(councilScript([5, 9])) });
    rest = restClient(service.url);
  };
  beforeEach(async () => {
    dir = tempDir();
    await serve();
  });
  afterEach(async () => {
    await service.stop();
    dir.remove();
  });

  const verify = async (runId: string): Promise<Verification> =>
    rest.read(await rest.get(`/api/runs/${runId}/verify`), 200, 'verification.json');
  const finished = async (): Promise<string> => {
    const runId = await rest.start();
    await rest.until(runId, isOver);
    return runId;
  };
  /** Stops the service, changes its files, and starts it again. */
  const whileStopped = async (change: () => void): Promise<void> => {
    await service.stop();
    change();
    await serve();
  };

  it('verifies completed, waiting and cancelled runs, and returns their heads', async () => {
    const paused = await startGodRun(service.context, graphOf('write -> judge?'));
    await pausedBefore(service.context, paused, 'write');
    const cancelled = await startGodRun(service.context, graphOf('write'));
    await service.context.registry.cancel(cancelled);
    for (const runId of [await finished(), paused, cancelled]) {
      const events = await recordOf(service.context.log, runId);
      const head = { events: events.length, head_hash: events.at(-1)?.hash };
      const { ledger: _, ...found } = await verify(runId);
      expect(found).to.deep.equal({ run_id: runId, ...head, ...NONE });
    }
  });

  it('reports no difference for a run in progress', async () => {
    const runIds = await Promise.all(Array.from({ length: 10 }, () => rest.start()));
    for (let left = runIds; left.length > 0;) {
      for (const found of await Promise.all(runIds.map(verify))) expect(found).to.include(NONE);
      const runs = await Promise.all(left.map((runId) => rest.poll(runId)));
      left = runs.filter((run) => !isOver(run)).map((run) => run.run_id);
    }
  });

  it('answers 404 naming the id of an unknown run', async () => {
    expect(rest.problem(await rest.get(`/api/runs/${NO_RUN}/verify`), 404).detail).to.include(NO_RUN);
    rest.problem(await rest.get('/api/runs/x/verify'), 404);
  });

  onEmbeddedLog(() => {
    it('finds a changed byte, and names the event', async () => {
      const [changed, sound] = [await finished(), await finished()];
      const event = (await recordOf(service.context.log, changed)).find(({ type }) => type === 'NodeCompleted');
      await whileStopped(() => damageEvent(dir.path, event?.id ?? '', ['Draft 1', 'Draft 7']));
      const found = await verify(changed);
      expect(found).to.include({ valid: false, events: event?.seq });
      expect(found.first_difference).to.have.property('seq', event?.seq);
      expect(await verify(sound)).to.include(NONE);
    });

    it('finds a missing event, and missing last events', async () => {
      const [holed, cut] = [await finished(), await finished()];
      await finished();
      const [hole, tail] = [
        (await recordOf(service.context.log, holed))[4],
        (await recordOf(service.context.log, cut)).at(-1),
      ];
      await whileStopped(() => [hole, tail].forEach((event) => dropEvent(dir.path, event?.id ?? '')));
      expect((await verify(holed)).first_difference).to.have.property('seq', hole?.seq);
      const { valid, first_difference: difference } = await verify(cut);
      expect(valid).to.equal(false);
      expect(difference?.seq).to.equal(tail?.seq);
      expect(difference?.what).to.include('ends before');
      for (const runId of [holed, cut]) rest.problem(await rest.get(`/api/runs/${runId}`), 500);
    });

    it('reports a stored view that differs from the fold once, and replaces it', async () => {
      const runId = await finished();
      const poll = `/api/councils/run/${runId}`;
      const paths = [poll, `/api/runs/${runId}`, '/api/runs/'];
      const answers = (): Promise<readonly string[]> =>
        Promise.all(paths.map(async (path) => (await rest.get(path)).text));
      const shown = await answers();
      const { seq = -1 } = (await recordOf(service.context.log, runId)).at(-1) ?? {};
      const where = `WHERE id = '${runId}'`;
      const changed = (field: string, value: string): string =>
        `UPDATE runs SET summary = json_set(summary, '$.${field}', ${value}) ${where}`;
      const changes = [
        [changed('finalDraft', "'Bears'"), seq],
        [changed('error', "'None'"), seq],
        [changed('seq', '3'), 4],
        [changed('seq', '99'), seq + 1],
        [`DELETE FROM runs ${where}`, 0],
      ] as const;
      for (const [sql, at] of sample(changes, 2)) {
        await whileStopped(() => changeViews(dir.path, sql));
        const { valid, first_difference: difference } = await verify(runId);
        expect({ valid, seq: difference?.seq }, sql).to.deep.equal({ valid: false, seq: at });
        expect(difference?.what).to.match(/stored/);
        expect(await answers(), sql).to.deep.equal(shown);
        expect(await verify(runId), sql).to.include(NONE);
        expect(service.faults, sql).to.deep.include({ runId });
      }
      await whileStopped(() => undefined);
      expect(await answers()).to.deep.equal(shown);
      expect(await verify(runId)).to.include(NONE);
    });
  });

  it('checks the event of the parent after which a fork continues', async () => {
    const { log } = service.context;
    const parent = await finished();
    const at = 5;
    const hash = (await recordOf(log, parent))[at]?.hash ?? '';
    const child = async (of: object): Promise<Verification> => {
      const runId = uuid();
      // The event that a fork will record.
      const fact = { type: 'RunRequested', data: { ...runRequest(runId), parent: of } };
      await log.append(
        runStream(runId),
        sealEvents(BEGINNING, [fact], { ...sealing, correlationId: runId, causationId: runId }).events,
        'none',
      );
      return verify(runId);
    };
    expect(await child({ runId: parent, at, hash })).to.include(NONE);
    for (const wrong of [
      { runId: parent, at: at + 1, hash },
      { runId: parent, at, hash: sha256('x') },
      { runId: parent, at: 999, hash },
      { runId: NO_RUN, at: 0, hash },
    ]) {
      const { valid, first_difference: difference } = await child(wrong);
      expect({ valid, seq: difference?.seq }).to.deep.equal({ valid: false, seq: 0 });
      expect(difference?.what).to.include(wrong.runId);
    }
  });
});
