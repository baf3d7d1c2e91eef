import { expect } from 'chai';
import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openLogReadOnly } from '../../src/eventlog/embedded/read-only.js';
import { openEmbeddedLog } from '../../src/eventlog/embedded/log.js';
import type { EventLog } from '../../src/eventlog/port.js';
import { changedLog } from '../support/changed-log.js';
import { startChild } from '../support/child.js';
import type { CouncilBench } from '../support/council-command.js';
import { COUNCIL, councilBench } from '../support/council-command.js';
import { restClient } from '../support/rest-client.js';
import { startService } from '../support/running-service.js';
import { startServiceProcess } from '../support/service-process.js';
import { onSmallDisks, smallDisk } from '../support/small-disk.js';
import { IS_SOAK } from '../support/soak.js';
import { rejectionOf } from '../support/rejection.js';
import { onEmbeddedLog } from '../support/test-event-store.js';
import { untilTrue } from '../support/until-true.js';

/** Backups of one log, and logs: 200 backups of one log under load would grow it until one backup takes minutes. */
const BACKUPS = IS_SOAK ? 5 : 2;
const LOGS = IS_SOAK ? 40 : 1;
/** Clients that start runs as fast as they are answered. */
const CLIENTS = IS_SOAK ? 32 : 4;

const MiB = 1024 * 1024;
const PARTIAL = /^\.council-backup-/;

onEmbeddedLog(() =>
  describe('council backup', () => {
    let bench: CouncilBench;

    beforeEach(() => {
      bench = councilBench();
      mkdirSync(join(bench.path, 'backups'));
    });
    afterEach(() => bench.clear());

    const target = (name: string): string => join(bench.path, 'backups', name);
    const partial = (): readonly string[] =>
      readdirSync(join(bench.path, 'backups')).filter((name) => PARTIAL.test(name));
    const backup = (to: string, ...words: readonly string[]) => bench.council(['backup', '--to', to, ...words]);

    /** Opens the log of the bench for some work. */
    const onLog = async (act: (log: Required<EventLog>) => Promise<unknown>): Promise<void> => {
      mkdirSync(bench.dataDir, { recursive: true });
      const log = await openEmbeddedLog({ file: join(bench.dataDir, 'log.sqlite') });
      try {
        await act(log);
      } finally {
        await log.close();
      }
    };
    /** Appends streams of one event each. */
    const filled = async (log: EventLog, streams: number, chars = 100): Promise<void> => {
      const data = JSON.stringify({ text: 'x'.repeat(chars) });
      const event = () => ({ id: randomUUID(), type: 'Written', data, metadata: { hash: 'none' } });
      await Promise.all(Array.from({ length: streams }, () => log.append(`run-${randomUUID()}`, [event()], 'none')));
    };
    const ignored = { signal: new AbortController().signal, onProgress: () => undefined };

    const holdsEveryRun = async (): Promise<void> => {
      const service = await startServiceProcess(bench.dataDir, { environment: { MAX_RUNS_PER_MINUTE: '0' } });
      const acknowledged: string[] = [];
      /** Starts runs as fast as they are answered while the signal is not aborted. */
      const load = (signal: AbortSignal) =>
        Promise.all(
          Array.from({ length: CLIENTS }, async () => {
            const rest = restClient(service.url);
            while (!signal.aborted) {
              // An idle connection may have ended while this process read a copy: the request then fails.
              const reply = await rest.post('/api/councils/run', { input_topic: 'Trees' }).catch(() => null);
              if (reply?.status === 202) acknowledged.push(rest.read(reply, 202, 'run-start.json').run_id);
            }
          }),
        );
      try {
        for (let each = 0; each < BACKUPS; each += 1) {
          const before = acknowledged.length;
          const loaded = new AbortController();
          const clients = load(loaded.signal);
          await untilTrue(() => acknowledged.length > before);
          const runs = [...acknowledged];
          const to = target(`b${each}`);
          // A process of its own: this one stops for seconds to read a copy, and its idle connections end meanwhile.
          const words = [COUNCIL, 'backup', '--to', to, '--url', service.url];
          const { code, stdout, stderr } = await bench.program(process.execPath, words, { input: '' }).exit;
          loaded.abort();
          await clients;
          expect(code, stderr).to.equal(0);
          expect(stdout).to.match(/: [\d,]+ events, complete and verified\n$/);
          const log = openLogReadOnly(join(to, 'log.sqlite'));
          const held = new Set<string>();
          for await (const { stream } of log.readAll(null, { categories: ['run'] })) held.add(stream);
          expect(runs.filter((run) => !held.has(`run-${run}`))).to.deep.equal([]);
          log.close();
          const checked = await bench.council(['check'], { env: { DATA_DIR: to } });
          expect(checked.code, checked.stdout).to.equal(0);
          if (each > 0) rmSync(to, { recursive: true });
        }
      } finally {
        await service.stop();
      }
      expect(readdirSync(target('b0'))).to.deep.equal(['log.sqlite']);
      const restored = await startService({ dataDir: target('b0') });
      const rest = restClient(restored.url);
      expect((await rest.get(`/api/councils/run/${acknowledged[0]}`)).status).to.equal(200);
      await restored.stop();
    };
    for (let each = 1; each <= LOGS; each += 1) {
      it(
        `holds every run acknowledged before it began, and is accepted by check and by a start (log ${each})`,
        holdsEveryRun,
      );
    }

    it('copies the log of a stopped service with the same identity, positions and bytes', async () => {
      await onLog((log) => filled(log, 1_500));
      const { code, stderr } = await backup(target('copy'));
      expect(code, stderr).to.equal(0);
      expect(stderr).to.include('copying 0 of 1500 events').and.include('verifying');
      const [log, copy] = [bench.dataDir, target('copy')].map((folder) => openLogReadOnly(join(folder, 'log.sqlite')));
      expect(copy?.end()).to.deep.equal(log?.end());
      const all = async (from = log): Promise<readonly unknown[]> => {
        const events: unknown[] = [];
        for await (const event of from?.readAll(null) ?? []) events.push(event);
        return events;
      };
      expect(await all(copy)).to.deep.equal(await all());
      log?.close();
      copy?.close();
      expect(statSync(target('copy')).mode & 0o777).to.equal(0o700);
    });

    it('refuses a folder that exists, is in DATA_DIR or has no parent, and a log that a service uses', async () => {
      await onLog((log) => filled(log, 1));
      for (const [to, reason] of [
        [join(bench.path, 'backups'), 'it exists already'],
        [join(bench.dataDir, 'backup'), 'it is in the data directory'],
        [join(bench.dataDir, 'views', 'backup'), 'it is in the data directory'],
        [target('no/such'), 'there is no folder'],
      ] as const) {
        const { code, stderr } = await backup(to);
        expect([to, code]).to.deep.equal([to, 1]);
        expect(stderr).to.include(`"${to}": ${reason}`);
      }
      expect((await bench.council(['backup'])).code).to.equal(2);
      const service = await startService({ dataDir: bench.dataDir });
      expect((await backup(target('held'))).code).to.equal(5);
      const relative = await backup('relative', '--url', service.url);
      expect(relative).to.include({ code: 1 });
      expect(relative.stderr).to.include('it is no absolute path');
      await service.stop();
      expect(await backup(target('away'), '--url', service.url)).to.include({ code: 3 });
      expect(readdirSync(join(bench.path, 'backups'))).to.deep.equal([]);
    });

    it('names the backup of the server for a log at EVENTSTORE_URL', async () => {
      mkdirSync(bench.dataDir);
      const env = { EVENTSTORE_URL: 'esdb://127.0.0.1:1?tls=false' };
      const ended = await bench.council(['backup', '--to', target('server')], { env });
      expect(ended.code).to.equal(2);
      expect(ended.stderr).to.include('use the backup of the server that keeps the log');
      const service = await startService({
        decorate(log) {
          const { backup: _none, ...others } = changedLog(log, {});
          return others;
        },
      });
      const refused = await backup(target('server'), '--url', service.url);
      await service.stop();
      expect(refused.code).to.equal(1);
      expect(refused.stderr).to.include('use the backup of the server that keeps the log');
    });

    it('leaves no folder under the final name if it is killed, and the next one removes what is left', async () => {
      await onLog((log) => filled(log, 600));
      const script = `
        import { openEmbeddedLog } from ${JSON.stringify(new URL('../../src/eventlog/embedded/log.js', import.meta.url))};
        const [file, to, state] = process.argv.slice(2);
        const log = await openEmbeddedLog({ file });
        const onProgress = (progress) => { if (progress.state === state) process.kill(process.pid, 'SIGKILL'); };
        await log.backup(to, { signal: new AbortController().signal, onProgress });`;
      for (const state of ['copying', 'verifying']) {
        const words = [join(bench.dataDir, 'log.sqlite'), target('cut'), state];
        const killed = startChild(process.execPath, [bench.written('cut.mjs', script), ...words]);
        expect((await killed.exit).stderr).to.equal('');
        expect(existsSync(target('cut'))).to.equal(false);
        expect(partial()).to.have.length(1);
        expect((await backup(target(state))).code).to.equal(0);
        expect(partial()).to.deep.equal([]);
      }
    });

    it('leaves alone what only has the name of a cut copy: a folder with other files, a file, a link to a log', async () => {
      await onLog((log) => filled(log, 1));
      const named = (): string => join(bench.path, 'backups', `.council-backup-${randomUUID()}`);
      const [folder, file, link] = [named(), named(), named()];
      mkdirSync(folder);
      writeFileSync(join(folder, 'note'), 'mine');
      writeFileSync(file, 'mine');
      mkdirSync(join(bench.path, 'other'));
      writeFileSync(join(bench.path, 'other', 'log.sqlite'), 'mine');
      symlinkSync(join(bench.path, 'other'), link);
      expect((await backup(target('copy'))).code).to.equal(0);
      expect(readdirSync(folder)).to.deep.equal(['note']);
      expect(partial()).to.have.length(3);
      expect(readdirSync(join(bench.path, 'other'))).to.deep.equal(['log.sqlite']);
    });

    it('leaves the copy of another backup into the same folder alone while it is written', async () => {
      mkdirSync(join(bench.path, 'other'));
      const second = await openEmbeddedLog({ file: join(bench.path, 'other', 'log.sqlite') });
      await filled(second, 10);
      const beside: Promise<unknown>[] = [];
      await onLog(async (log) => {
        await filled(log, 600);
        await log.backup(target('first'), {
          ...ignored,
          onProgress() {
            if (beside.length === 0) beside.push(second.backup(target('second'), ignored));
          },
        });
        await Promise.all(beside);
      });
      await second.close();
      expect(readdirSync(join(bench.path, 'backups')).sort()).to.deep.equal(['first', 'second']);
    });

    it('lets appends pass between its slices, none of which is longer than an append may wait', async () => {
      await onLog(async (log) => {
        await filled(log, 40, 100_000);
        const steps: number[] = [];
        const order: string[] = [];
        const appended: Promise<unknown>[] = [];
        await log.backup(target('beside'), {
          ...ignored,
          onProgress({ state, events }) {
            if (state === 'copying') steps.push(events);
            if (appended.length === 0) appended.push(filled(log, 1).then(() => order.push('appended')));
          },
        });
        order.push('backed up');
        await Promise.all(appended);
        expect(order).to.deep.equal(['appended', 'backed up']);
        // 3 events of 100 kB reach the bound of 256 KiB.
        expect(steps).to.deep.equal([0, ...Array.from({ length: 13 }, (_, index) => 3 * (index + 1)), 40]);
      });
    });

    it('runs once at a time in a service, goes on without its client, and ends with the service', async () => {
      let ended = '';
      const service = await startService({
        decorate: (log) =>
          changedLog(log, {
            async backup(_, { signal, onProgress }) {
              onProgress({ state: 'copying', events: 1, of: 2 });
              return await new Promise((_resolve, reject) => {
                signal.addEventListener('abort', () => {
                  ended = String(signal.reason);
                  reject(signal.reason as Error);
                });
              });
            },
          }),
      });
      const rest = restClient(service.url);
      expect((await rest.get('/api/backup')).status).to.equal(404);
      const leaving = new AbortController();
      const words = { method: 'POST', body: JSON.stringify({ to: target('one') }), signal: leaving.signal };
      await fetch(`${service.url}/api/backup`, { ...words, headers: { 'content-type': 'application/json' } });
      leaving.abort();
      const shown = rest.read(await rest.get('/api/backup'), 200, 'backup-record.json');
      expect(shown).to.include({ to: target('one'), state: 'copying', events: 1, events_total: 2, ended_at: null });
      const refused = rest.problem(await rest.post('/api/backup', { to: target('two') }), 409);
      expect(refused.detail).to.include('another backup runs');
      await service.stop();
      expect(ended).to.include('the service has stopped');
    });

    it('fails and leaves nothing if the log cannot be read', async () => {
      await onLog(async (log) => {
        await filled(log, 10);
        const unread = rejectionOf(
          log.backup(target('aborted'), { ...ignored, signal: AbortSignal.abort(new Error('stopped')) }),
        );
        expect(String(await unread)).to.equal('Error: stopped');
      });
      writeFileSync(join(bench.path, 'backups', 'note'), '');
      expect(readdirSync(join(bench.path, 'backups'))).to.deep.equal(['note']);
    });

    onSmallDisks(() => {
      it('is refused without room for it, and given up while 64 MiB are free, so that a log beside it has room', async () => {
        const disk = smallDisk(80 * MiB);
        await onLog(async (log) => {
          await filled(log, 60, 100_000);
          disk.fill(66 * MiB);
          const to = join(disk.path, 'backup');
          expect(String(await rejectionOf(log.backup(to, ignored)))).to.match(
            /its disk has \d+ MB free, and the backup needs/,
          );
          disk.clear();
          const onProgress = (): void => disk.fill(60 * MiB);
          const failed = await rejectionOf(log.backup(to, { ...ignored, onProgress }));
          expect(failed).to.include({ code: 'backup.failed' });
          expect(readdirSync(disk.path)).to.deep.equal(['ballast']);
        });
        disk.remove();
      });
    });
  }),
);
