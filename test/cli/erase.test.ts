import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { openEmbeddedLog } from '../../src/eventlog/embedded/log.js';
import type { CouncilBench } from '../support/council-command.js';
import { councilBench } from '../support/council-command.js';
import { changeLog } from '../support/damaged-log.js';
import { fakeEventStore } from '../support/fake-event-store.js';
import { isOver, restClient } from '../support/rest-client.js';
import { startService } from '../support/running-service.js';
import { onEmbeddedLog } from '../support/test-event-store.js';
import { untilTrue } from '../support/until-true.js';

onEmbeddedLog(() =>
  describe('council erase', () => {
    let bench: CouncilBench;
    let erased: string;
    let kept: string;

    /** A folder in which one of two runs is erased. */
    before(async () => {
      bench = councilBench();
      const service = await startService({ dataDir: bench.dataDir, eventStore: null });
      const client = restClient(service.url);
      [erased, kept] = [await client.start('About zyxcanary'), await client.start()];
      for (const runId of [erased, kept]) await client.until(runId, isOver);
      const done = await bench.council(['erase', erased, '--reason', 'asked', '--url', service.url]);
      expect([done.code, done.stdout]).to.deep.equal([0, `Run ${erased} is erased.\n`]);
      expect(client.problem(await client.get(`/api/runs/${erased}`), 410).erased?.reason).to.equal('asked');
      await service.stop();
    });
    after(() => bench.clear());

    it('leaves a log that check, export and verify understand', async () => {
      const checked = await bench.council(['check']);
      expect(checked.code, checked.stdout).to.equal(0);
      const exported = await bench.council(['export', erased]);
      expect(exported.code).to.equal(4);
      expect(exported.stderr).to.include('was erased');
      expect((await bench.council(['verify', kept])).code).to.equal(0);
    });

    it('cannot be mistaken for the loss of a run: check finds one without a leaf', async () => {
      const folder = bench.copied(bench.dataDir, 'lost');
      const log = await openEmbeddedLog({ file: join(folder, 'log.sqlite') });
      await log.remove([`run-${kept}`]);
      await log.close();
      const { code, stdout } = await bench.council(['check'], { env: { DATA_DIR: folder } });
      expect(code).to.equal(1);
      expect(stdout).to.include(`the events of run-${kept} are gone, and no erasure is recorded`);
      rmSync(join(folder, 'views'), { recursive: true });
      const service = await startService({ dataDir: folder, eventStore: null });
      expect((await restClient(service.url).get(`/api/runs/${kept}`)).status).to.equal(500);
      await service.stop();
    });

    it('is kept by salvage, backup and migrate, whose copies refuse the id of the run', async () => {
      const to = join(bench.path, 'salvaged');
      const salvaged = await bench.council(['salvage', '--to', to]);
      expect(salvaged.code, salvaged.stdout).to.equal(0);
      const backup = join(bench.path, 'backup');
      expect((await bench.council(['backup', '--to', backup])).code).to.equal(0);
      for (const folder of [to, backup]) {
        const copy = await openEmbeddedLog({ file: join(folder, 'log.sqlite') });
        const event = { id: crypto.randomUUID(), type: 'Written', data: '{}', metadata: {} };
        const refused = await copy.append(`run-${erased}`, [event], 'none').catch((error: unknown) => error);
        expect(refused).to.include({ code: 'log.stream-removed' });
        await copy.close();
      }
      const server = await fakeEventStore(join(bench.path, 'server.sqlite'));
      const env = { EVENTSTORE_URL: server.url };
      for (let again = 0; again < 2; again += 1) {
        const migrated = await bench.council(['migrate'], { env });
        expect(migrated.code, migrated.stderr).to.equal(0);
      }
      const eventStore = { url: server.url, prefix: '' };
      const service = await startService({ dataDir: join(bench.path, 'moved'), eventStore });
      const client = restClient(service.url);
      expect(client.problem(await client.get(`/api/runs/${erased}`), 410).erased?.reason).to.equal('asked');
      expect((await client.get(`/api/runs/${kept}`)).status).to.equal(200);
      await service.stop();
      await server.stop();
    });

    it('stays an erasure when salvage meets a damaged leaf before it, and every run has a leaf again', async () => {
      const from = bench.copied(bench.dataDir, 'damaged');
      // Leaf 1 is that of the run that is kept or of the erased one, leaf 2 that of the erasure.
      changeLog(from, "UPDATE events SET data = 'x' WHERE type = 'LeafAdded' AND revision = 1");
      const to = join(bench.path, 'damaged-new');
      const { code, stdout } = await bench.council(['salvage', '--to', to], { env: { DATA_DIR: from } });
      expect(code).to.equal(1);
      expect(stdout).to.match(/^renumbered: the ledger lacks leaf 1: .+$/m);
      expect(stdout).to.match(/ 0 omitted$/m);
      const service = await startService({ dataDir: to, eventStore: null });
      const client = restClient(service.url);
      expect(client.problem(await client.get(`/api/runs/${erased}`), 410).erased?.reason).to.equal('asked');
      await untilTrue(async () => (await client.get(`/api/runs/${kept}/verify`)).text.includes('"index"'));
      await service.stop();
      const checked = await bench.council(['check'], { env: { DATA_DIR: to } });
      expect(checked.code, checked.stdout).to.equal(0);
    });

    it('is kept by salvage when a checkpoint is damaged, which check names', async () => {
      const from = bench.copied(bench.dataDir, 'unsigned');
      changeLog(from, `UPDATE events SET data = '{"note":""}' WHERE type = 'CheckpointSigned'`);
      const env = { DATA_DIR: from };
      const checked = await bench.council(['check'], { env });
      expect(checked.code).to.equal(1);
      expect(checked.stdout).to.match(/^- event 0 of checkpoints: /m);
      const refused = await startService({ dataDir: bench.copied(from, 'unsigned-start'), eventStore: null }).then(
        async (service) => await service.stop(),
        (error: unknown) => error,
      );
      expect(String(refused)).to.include('Cannot read event 0 of "checkpoints"');
      const to = join(bench.path, 'unsigned-new');
      const { code, stdout } = await bench.council(['salvage', '--to', to], { env });
      expect(code).to.equal(1);
      expect(stdout)
        .to.match(/^omitted: checkpoints: event 0: .+$/m)
        .and.match(/ 1 omitted$/m);
      expect((await bench.council(['check'], { env: { DATA_DIR: to } })).code).to.equal(0);
    });

    it('is completed by the next start if the service died before the events were removed', async () => {
      // The leaf is there, and the events are those of an older copy.
      const folder = join(bench.path, 'cut');
      const service = await startService({ dataDir: folder, eventStore: null });
      const client = restClient(service.url);
      const runId = await client.start('About zyxcanary');
      await client.until(runId, isOver);
      await service.stop();
      const log = await openEmbeddedLog({ file: join(folder, 'log.sqlite') });
      let last = null;
      for await (const event of log.readStream('ledger')) last = event;
      const leaf = {
        kind: 'erasure',
        what: 'run',
        id: runId,
        events: 3,
        headHash: 'x',
        erasedAt: '2026-01-01',
        reason: null,
        actor: null,
      };
      const event = { id: crypto.randomUUID(), type: 'LeafAdded', data: JSON.stringify(leaf), metadata: {} };
      await log.append('ledger', [event], last?.revision ?? 'none');
      await log.close();
      cpSync(folder, join(bench.path, 'cut-copy'), { recursive: true });
      const next = await startService({ dataDir: folder, eventStore: null });
      expect((await restClient(next.url).get(`/api/runs/${runId}`)).status).to.equal(410);
      await next.stop();
      expect((await bench.council(['check'], { env: { DATA_DIR: folder } })).code).to.equal(0);
    });
  }),
);
