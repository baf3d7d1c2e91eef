import { expect } from 'chai';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { HistoryRecord } from '../../src/generated/schemas.js';
import type { LanguageModel } from '../../src/models/port.js';
import { damageEvent, dropEvent, swapRecords } from '../support/damaged-log.js';
import { graphOf } from '../support/given.js';
import { pausedBefore, startGodRun } from '../support/god-run.js';
import { recordOf } from '../support/record-of.js';
import type { RestClient } from '../support/rest-client.js';
import { isOver, restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { councilScript, scriptedModel } from '../support/scripted-model.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { onEmbeddedLog } from '../support/test-event-store.js';
import { openChannel } from '../support/channel-client.js';
import { openEventStream } from '../support/event-stream-client.js';
import { changedLog } from '../support/changed-log.js';
import { rejectionOf } from '../support/rejection.js';
import { openTestEngine, runRequest } from '../support/open-engine.js';
import { RunCorrupt } from '../../src/run/errors.js';
import { nodeSystem } from '../../src/system/system.js';
import { untilTrue } from '../support/until-true.js';
import { sample, soakIt } from '../support/soak.js';

const DETAIL = 'The record of this run is damaged';

onEmbeddedLog(() =>
  describe('A run whose record is corrupt', () => {
    let dir: TempDir;
    let service: RunningService;
    let rest: RestClient;

    const serve = async (
      model: LanguageModel = scriptedModel(councilScript([5, 9])),
      settings: { readonly maxActiveRuns?: number } = {},
    ): Promise<void> => {
      service = await startService({ dataDir: dir.path, model, ...settings });
      rest = restClient(service.url);
    };
    /** Whether the tests of a block share one folder, in which each has its own run. */
    let isShared = false;
    const begin = (): void => {
      dir = tempDir();
    };
    const end = async (): Promise<void> => {
      await service.stop();
      dir.remove();
    };
    beforeEach(() => {
      if (!isShared) begin();
    });
    afterEach(async () => {
      if (!isShared) await end();
    });
    const share = (prepare: () => Promise<void>): void => {
      before(async () => {
        isShared = true;
        begin();
        await prepare();
      });
      after(async () => {
        await end();
        isShared = false;
      });
    };

    const finished = async (): Promise<string> => {
      const runId = await rest.start();
      await rest.until(runId, isOver);
      return runId;
    };
    const firstDone = async (runId: string): Promise<string> =>
      (await recordOf(service.context.log, runId)).find(({ type }) => type === 'NodeCompleted')?.id ?? '';
    const restart = async (between: () => void = () => undefined): Promise<void> => {
      await service.stop();
      between();
      await serve();
    };
    const rowOf = async (runId: string): Promise<HistoryRecord | undefined> => {
      const rows = rest.read(await rest.get('/api/runs/'), 200, 'history-list.json');
      return rows.find(({ id }) => id === runId);
    };
    const expectRefused = async (runId: string): Promise<void> => {
      rest.problem(await rest.get(`/api/councils/run/${runId}`), 500);
      expect(await rowOf(runId)).to.include({ status: 'failed', error: DETAIL });
    };
    const expectRefusedEverywhere = async (runId: string): Promise<void> => {
      const derived = ['/genealogy', '/genealogy?format=mermaid', '/deliberation', '/chart', '/chart?at=0'];
      const paths = ['', '/events', '/events?from=1&limit=1', '/state', '/state?at=0', ...derived];
      for (const path of [`/api/councils/run/${runId}`, ...paths.map((each) => `/api/runs/${runId}${each}`)]) {
        expect(rest.problem(await rest.get(path), 500).detail, path).to.include(DETAIL);
      }
      const headers = { Accept: 'application/x-ndjson', 'If-None-Match': '*' };
      rest.problem(await rest.send('GET', `/api/runs/${runId}/events`, { headers }), 500);
      expect(await rowOf(runId)).to.include({ status: 'failed', error: DETAIL, final_draft: null });
      const verified = rest.read(await rest.get(`/api/runs/${runId}/verify`), 200, 'verification.json');
      expect(verified.valid).to.equal(false);
    };

    describe('that was changed', () => {
      const all = [
        ['its events are read', '/events'],
        ['it is verified', '/verify'],
        ['its state is read', '/state'],
        ['its genealogy is read', '/genealogy'],
        ['its deliberation is read', '/deliberation'],
        ['its chart is shown', '/chart'],
      ] as const;
      const ways = sample(all, 2);
      const runIds: string[] = [];
      let sound: string;
      let soundRow: HistoryRecord | undefined;

      share(async () => {
        let script = councilScript([5, 9]);
        await serve(scriptedModel((request, index) => script(request, index)));
        for (const _ of ways) {
          // Every draft begins with "Draft 1".
          script = councilScript([5, 9]);
          runIds.push(await finished());
        }
        sound = await finished();
        soundRow = await rowOf(sound);
        const eventIds = await Promise.all(runIds.map(firstDone));
        await restart(() => eventIds.forEach((id) => damageEvent(dir.path, id, ['Draft 1', 'Draft 7'])));
      });

      for (const [at, [how, path]] of ways.entries()) {
        it(`is reported as corrupt everywhere once ${how}, and after the next start`, async () => {
          const runId = runIds[at] ?? '';
          expect((await rest.get(`/api/runs/${runId}${path}`)).status).to.equal(path === '/verify' ? 200 : 500);
          await expectRefusedEverywhere(runId);
          await restart();
          await expectRefusedEverywhere(runId);
          expect(await rowOf(sound)).to.deep.equal(soundRow);
        });
      }
    });

    it('is shown again after its record was repaired and verified, and after the next start', async () => {
      await serve();
      const runId = await finished();
      const row = await rowOf(runId);
      const eventId = await firstDone(runId);
      await restart(() => damageEvent(dir.path, eventId, ['Draft 1', 'Draft 7']));
      rest.problem(await rest.get(`/api/runs/${runId}/events`), 500);
      await restart(() => damageEvent(dir.path, eventId, ['Draft 7', 'Draft 1']));
      await expectRefused(runId);
      const verified = rest.read(await rest.get(`/api/runs/${runId}/verify`), 200, 'verification.json');
      expect(verified.valid).to.equal(true);
      for (let start = 0; start < 2; start += 1) {
        expect(await rowOf(runId)).to.deep.equal(row);
        expect((await rest.get(`/api/councils/run/${runId}`)).status).to.equal(200);
        await restart();
      }
    });

    it('is found at the start if it has not ended, with and without views', async () => {
      for (const views of ['kept', 'deleted']) {
        const model = scriptedModel((request, index) => (index === 0 ? councilScript([5])(request, index) : 'hold'));
        await serve(model);
        const runId = await rest.start();
        await model.called(2);
        const eventId = await firstDone(runId);
        await restart(() => {
          damageEvent(dir.path, eventId, ['Draft 1', 'Draft 7']);
          if (views === 'deleted') rmSync(join(dir.path, 'views'), { recursive: true });
        });
        await untilTrue(async () => (await rest.get(`/api/runs/${runId}`)).status === 500);
        await expectRefusedEverywhere(runId);
        await service.stop();
      }
    });

    for (const views of sample(['kept', 'deleted'], 1)) {
      it(`is found at the start while it is paused or pending, views ${views}`, async () => {
        const held = { maxActiveRuns: 1 };
        const model = scriptedModel(() => 'hold');
        await serve(model, held);
        const paused = await startGodRun(service.context, graphOf('write'));
        await pausedBefore(service.context, paused, 'write');
        await rest.start();
        const pending = await rest.start();
        const requested = await Promise.all(
          [paused, pending].map(async (runId) => (await recordOf(service.context.log, runId))[0]?.id ?? ''),
        );
        await service.stop();
        damageEvent(dir.path, requested[0] ?? '', ['The sea', 'The bay']);
        damageEvent(dir.path, requested[1] ?? '', ['Trees', 'Bears']);
        if (views === 'deleted') rmSync(join(dir.path, 'views'), { recursive: true });
        await serve(model, held);
        await untilTrue(
          async () => (await rowOf(pending))?.error === DETAIL && (await rowOf(paused))?.error === DETAIL,
        );
        for (const runId of [paused, pending]) await expectRefusedEverywhere(runId);
      });
    }

    it('is found when a human decides its pause', async () => {
      await serve();
      const runId = await startGodRun(service.context, graphOf('write -> judge?'));
      await pausedBefore(service.context, runId, 'write');
      const [requested] = await recordOf(service.context.log, runId);
      await restart(() => damageEvent(dir.path, requested?.id ?? '', ['The sea', 'The bay']));
      const reply = await rest.post(`/api/councils/run/${runId}/approve`, { action: 'approve' });
      expect(rest.problem(reply, 500).detail).to.include(DETAIL);
      await expectRefusedEverywhere(runId);
    });

    it('is not shown as the run whose record replaced its own', async () => {
      await serve();
      const [one, other] = [await finished(), await finished()];
      await restart(() => swapRecords(dir.path, [one, other]));
      for (const [runId, path] of [
        [one, '/state'],
        [other, '/genealogy'],
      ] as const) {
        expect(rest.problem(await rest.get(`/api/runs/${runId}${path}`), 500).detail).to.include(DETAIL);
        await expectRefusedEverywhere(runId);
      }
    });

    const asked: readonly (readonly [string, (runId: string) => Promise<number>])[] = [
      [
        'is decided on',
        async (id) => (await rest.post(`/api/councils/run/${id}/approve`, { action: 'approve' })).status,
      ],
      ['is cancelled', async (id) => (await rest.post(`/api/councils/run/${id}/cancel`, {})).status],
      ['is forked', async (id) => (await rest.post(`/api/runs/${id}/fork`, { at: 0 })).status],
      ['has its events read', async (id) => (await rest.get(`/api/runs/${id}/events?limit=1`)).status],
      ['has its state read', async (id) => (await rest.get(`/api/runs/${id}/state?at=0`)).status],
      ['has its God Mode state read', async (id) => (await rest.get(`/api/councils/run/${id}/state`)).status],
      ['is followed', async (id) => await openChannel(service.url, `/ws/council/${id}`).closed],
    ];
    describe('that was cut', () => {
      /** The id of each run, and the revision of its pause, where its record now ends. */
      const cut: { readonly runId: string; readonly paused: number }[] = [];

      share(async () => {
        await serve();
        const dropped: string[] = [];
        for (const _ of asked) {
          const runId = await startGodRun(service.context, graphOf('write'));
          await pausedBefore(service.context, runId, 'write');
          await rest.post(`/api/councils/run/${runId}/approve`, { action: 'approve' });
          await rest.until(runId, isOver);
          const recorded = await recordOf(service.context.log, runId);
          const paused = recorded.findIndex(({ type }) => type === 'RunReleased');
          cut.push({ runId, paused });
          dropped.push(...recorded.slice(paused + 1).map(({ id }) => id));
        }
        // Another event follows in the log, because the service refuses a log that ends before its views.
        await finished();
        await restart(() => dropped.forEach((id) => dropEvent(dir.path, id)));
      });

      for (const [at, [how, ask]] of asked.entries()) {
        it(`is found to have lost its end when it ${how}, and nothing is appended to it`, async () => {
          const { runId = '', paused = -1 } = cut[at] ?? {};
          expect(await ask(runId)).to.be.oneOf([500, 1011]);
          await expectRefusedEverywhere(runId);
          for (const [path, body] of [
            ['approve', { action: 'approve' }],
            ['cancel', {}],
          ] as const) {
            expect(rest.problem(await rest.post(`/api/councils/run/${runId}/${path}`, body), 500).detail).to.include(
              DETAIL,
            );
          }
          expect(await recordOf(service.context.log, runId)).to.have.length(paused + 1);
        });
      }
    });

    soakIt('is found again and shown in the same way after the views are deleted', async () => {
      await serve();
      const [runId] = [await finished(), await finished()];
      const eventId = await firstDone(runId);
      await restart(() => damageEvent(dir.path, eventId, ['Draft 1', 'Draft 7']));
      rest.problem(await rest.get(`/api/runs/${runId}/events`), 500);
      const list = (await rest.get('/api/runs/')).text;
      await restart(() => rmSync(join(dir.path, 'views'), { recursive: true }));
      expect((await rest.get('/api/runs/')).text).to.equal(list);
      await expectRefusedEverywhere(runId);
    });
  }),
);

describe('A run that is found corrupt while clients watch it', () => {
  it('closes their sockets with 1011 and aborts their event streams', async () => {
    let isSpoilt = false;
    const service = await startService({
      model: scriptedModel(councilScript([8])),
      decorate: (log) =>
        changedLog(log, {
          async *readStream(stream, range) {
            for await (const event of log.readStream(stream, range)) {
              yield isSpoilt ? { ...event, data: event.data.replace('The sea', 'The bay') } : event;
            }
          },
        }),
    });
    const { context, url } = service;
    const runId = await startGodRun(context, graphOf('write'));
    await pausedBefore(context, runId, 'write');
    const plain = openChannel(url, `/ws/council/${runId}`);
    const rich = openChannel(url, `/ws/council/${runId}?events=all`);
    const stream = openEventStream(url, `/api/runs/${runId}/stream`);
    await plain.until(({ event }) => event === 'run_paused');
    await rich.until(({ type }) => type === 'RunReleased');
    await stream.until(({ event }) => event === 'RunReleased');
    isSpoilt = true;
    expect((await context.audits.verify(runId))?.firstDifference).to.have.property('seq', 0);
    expect(await plain.closed).to.equal(1011);
    expect(await rich.closed).to.equal(1011);
    expect(await stream.over).to.equal('cut');
    expect(plain.messages.map(({ event }) => event)).to.deep.equal(['connected', 'node_active', 'run_paused']);
    await service.stop();
  });
});

describe('A run whose record is corrupt while it runs here', () => {
  it('is not served from its actor after it is found', async () => {
    const dir = tempDir();
    const model = scriptedModel(() => 'hold');
    const engine = await openTestEngine({
      path: dir.path,
      model,
      decorate: (log) =>
        changedLog(log, {
          async *readStream(stream, range) {
            for await (const event of log.readStream(stream, range)) {
              yield { ...event, data: event.data.replace('The sea', 'The bay') };
            }
          },
        }),
    });
    await engine.recover();
    const runId = nodeSystem().uuid();
    await engine.registry.start(runRequest(runId));
    await model.called(1);
    expect(await engine.queries.find(runId)).to.include({ status: 'running' });
    expect((await engine.audits.verify(runId))?.firstDifference).to.have.property('seq', 0);
    expect(engine.registry.live(runId)).not.to.equal(null);
    for (const reading of [engine.queries.find(runId), engine.queries.state(runId), engine.queries.folded(runId)]) {
      expect(await rejectionOf(reading)).to.be.instanceOf(RunCorrupt);
    }
    expect((await engine.queries.list({ limit: 1, offset: 0 }))[0]).to.include({ status: 'failed' });
    await engine.stop();
    dir.remove();
  });
});
