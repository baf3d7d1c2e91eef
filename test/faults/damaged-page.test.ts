import { expect } from 'chai';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { LogCorrupt } from '../../src/eventlog/errors.js';
import { instantModel } from '../support/instant-model.js';
import { recordOf } from '../support/record-of.js';
import { rejectionOf } from '../support/rejection.js';
import type { RestClient } from '../support/rest-client.js';
import { isOver, restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { onEmbeddedLog } from '../support/test-event-store.js';

const PAGE_BYTES = 4096;
const DETAIL = 'The record of this run is damaged';

onEmbeddedLog(() =>
  describe('A damaged page of the log', () => {
    let dir: TempDir;
    let service: RunningService;
    let rest: RestClient;
    let ids: readonly string[];

    const serve = async (): Promise<void> => {
      service = await startService({ dataDir: dir.path, model: instantModel() });
      rest = restClient(service.url);
    };
    /** Each run fills separate pages, which the service has not read since its start. */
    beforeEach(async () => {
      dir = tempDir();
      await serve();
      const started: string[] = [];
      for (let i = 0; i < 3; i += 1) {
        const id = await rest.start(`${i} `.repeat(4_000));
        await rest.until(id, isOver);
        started.push(id);
      }
      ids = started;
      await service.stop();
    });
    afterEach(async () => {
      await service.stop();
      dir.remove();
    });

    /** Zeroes a page that holds one of these events and nothing of another run. */
    const damage = (eventIds: readonly string[]): void => {
      const file = join(dir.path, 'log.sqlite');
      const bytes = readFileSync(file);
      const pages = eventIds.map((id) => Math.floor(bytes.indexOf(id) / PAGE_BYTES) * PAGE_BYTES);
      const from = pages.find((at) => {
        const page = bytes.subarray(at, at + PAGE_BYTES);
        return ids.filter((id) => page.includes(id)).length === 1;
      });
      expect(from).to.be.greaterThan(0);
      writeFileSync(file, bytes.fill(0, from, (from ?? 0) + PAGE_BYTES), { flag: 'r+' });
    };
    const eventsOf = async (id: string): Promise<readonly string[]> =>
      (await recordOf(service.context.log, id)).map((event) => event.id).toReversed();

    it('is logged once with the run that reads it, and does not affect other runs', async () => {
      await serve();
      const [touched = '', ...others] = ids;
      const eventIds = await eventsOf(touched);
      await service.stop();
      await serve();
      damage(eventIds);
      for (const path of ['events', 'state', 'chart', 'events']) {
        expect(rest.problem(await rest.get(`/api/runs/${touched}/${path}`), 500).detail, path).to.include(DETAIL);
      }
      const verified = rest.read(await rest.get(`/api/runs/${touched}/verify`), 200, 'verification.json');
      expect(verified.valid).to.equal(false);
      const rows = rest.read(await rest.get('/api/runs/'), 200, 'history-list.json');
      expect(rows.find(({ id }) => id === touched)).to.include({ status: 'failed', error: DETAIL });
      for (const id of others) expect((await rest.get(`/api/runs/${id}/events`)).status).to.equal(200);
      const next = await rest.start();
      expect((await rest.until(next, isOver)).status).to.equal('completed');
      expect(rest.problem(await rest.get('/api/health/ready'), 503).detail).to.equal(
        'Not ready: the event log is damaged',
      );
      const told = service.faults.filter((fault) => Reflect.get(fault, 'err') instanceof LogCorrupt);
      expect(told).to.have.length(1);
    });

    it('ends a start that must fold it with one line that says what to do', async () => {
      await serve();
      const eventIds = await eventsOf(ids[1] ?? '');
      await service.stop();
      damage(eventIds);
      rmSync(join(dir.path, 'views'), { recursive: true });
      const refused = await rejectionOf(serve());
      expect(refused).to.be.instanceOf(LogCorrupt);
      expect(String(refused)).to.include('council check').and.include('council salvage').and.not.include('\n');
    });
  }),
);
