import { expect } from 'chai';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { openEventStoreLog } from '../../src/eventlog/eventstoredb/log.js';
import type { EventLog } from '../../src/eventlog/port.js';
import { LEDGER_STREAM, leafOf } from '../../src/ledger/events.js';
import { newKeyPem } from '../../src/ledger/note.js';
import { nodeSystem } from '../../src/system/system.js';
import { startChild } from '../support/child.js';
import { fakeEventStore } from '../support/fake-event-store.js';
import { instantModel } from '../support/instant-model.js';
import { LEDGER_AT_ONCE } from '../support/ledger.js';
import type { LedgerCrash } from '../support/ledger-child.js';
import { isOver, restClient } from '../support/rest-client.js';
import { startService } from '../support/running-service.js';
import { startServiceProcess } from '../support/service-process.js';
import { tempDir } from '../support/temp-dir.js';
import { untilTrue } from '../support/until-true.js';
import { openProof, parseVkey } from './verifier.js';

const CHILD = fileURLToPath(new URL('../support/ledger-child.js', import.meta.url));
const RUNS = 3;

async function leavesIn(log: Pick<EventLog, 'readStream'>): Promise<readonly string[]> {
  const ids: string[] = [];
  for await (const event of log.readStream(LEDGER_STREAM)) {
    const leaf = leafOf(event);
    if (leaf.kind === 'run') ids.push(leaf.runId);
  }
  return ids;
}

describe('A crash of the service that adds leaves', () => {
  for (const stream of ['ledger', 'checkpoints'] as const) {
    for (const boundary of ['append unsent', 'append sent', 'append durable'] as const) {
      it(`leaves one leaf for each run, and a consistent checkpoint: ${stream}, ${boundary}`, async () => {
        const dir = tempDir();
        const crash: LedgerCrash = { path: dir.path, stream, boundary };
        const child = startChild(process.execPath, [CHILD, JSON.stringify(crash)]);
        await untilTrue(() => Promise.resolve(child.lines.length > 0));
        const dying = restClient(child.lines[0] ?? '');
        const ids = await Promise.all(Array.from({ length: RUNS }, () => dying.start()));
        expect((await child.exit).signal).to.equal('SIGKILL');

        const service = await startService({ dataDir: dir.path, model: instantModel(), ledger: LEDGER_AT_ONCE });
        const rest = restClient(service.url);
        for (const id of ids) {
          await rest.until(id, isOver);
          await untilTrue(async () => (await rest.get(`/api/runs/${id}/proof`)).status === 200);
          const { vkey } = rest.read(await rest.get('/api/ledger'), 200, 'ledger.json');
          openProof((await rest.get(`/api/runs/${id}/proof`)).text, parseVkey(vkey ?? ''));
        }
        const leaves = await leavesIn(service.context.log);
        expect(leaves).to.have.members(ids).and.to.have.lengthOf(RUNS);
        expect(service.faults).to.deep.equal([]);
        await service.stop();
        dir.remove();
      });
    }
  }

  it('on one EventStoreDB with three instances leaves one leaf for each run, in the order of their ends', async () => {
    const dir = tempDir();
    const server = await fakeEventStore(join(dir.path, 'server.sqlite'));
    const log = openEventStoreLog({ url: server.url, prefix: 'led', system: nodeSystem() });
    const keyFile = join(dir.path, 'key.pem');
    writeFileSync(keyFile, newKeyPem());
    const open = (name: string) =>
      startServiceProcess(join(dir.path, name), {
        environment: {
          EVENTSTORE_URL: server.url,
          EVENTSTORE_PREFIX: 'led',
          LEDGER_KEY_FILE: keyFile,
          CHECKPOINT_INTERVAL_S: '1',
          LOG_LEVEL: 'error',
          HEARTBEAT_MS: '500',
          SUSPECT_AFTER_MS: '5000',
        },
      });
    const services = await Promise.all(['a', 'b', 'c'].map(open));
    try {
      const ids: string[] = [];
      const startAll = async (): Promise<void> => {
        for (const service of services.filter(({ child }) => child.exitCode === null && child.signalCode === null))
          ids.push(...(await Promise.all([1, 2, 3].map(() => restClient(service.url).start()))));
      };
      await startAll();
      for (const victim of services.slice(0, 2)) {
        victim.child.kill('SIGKILL');
        await once(victim.child, 'exit');
        await startAll();
      }
      services.push(await open('a'));
      await startAll();
      const rest = restClient(services.at(-1)?.url ?? '');
      for (const id of ids) {
        await rest.until(id, isOver);
        await untilTrue(async () => (await rest.get(`/api/runs/${id}/proof`)).status === 200);
      }
      expect(await leavesIn(log))
        .to.have.members(ids)
        .and.to.have.lengthOf(ids.length);
      const ends: string[] = [];
      for await (const { type, stream } of log.readAll(null, { categories: ['run'] }))
        if (type === 'RunCompleted' || type === 'RunFailed') ends.push(stream.slice('run-'.length));
      expect(await leavesIn(log)).to.deep.equal(ends);
    } finally {
      await Promise.all(services.map((service) => service.stop()));
      await log.close();
      await server.stop();
      dir.remove();
    }
  });
});
