import { expect } from 'chai';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { HistoryRecord } from '../../src/generated/schemas.js';
import { damageEvent } from '../support/damaged-log.js';
import { recordOf } from '../support/record-of.js';
import type { RestClient } from '../support/rest-client.js';
import { isOver, restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { councilScript, scriptedModel } from '../support/scripted-model.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { onEmbeddedLog } from '../support/test-event-store.js';

onEmbeddedLog(() =>
  describe('The figures of runs of which one is corrupt', () => {
    let dir: TempDir;
    let service: RunningService;
    let rest: RestClient;
    let sound: string;
    let corrupt: string;
    let change: (piece: readonly [string, string]) => void;

    const serve = async (): Promise<void> => {
      service = await startService({ dataDir: dir.path, model: scriptedModel(councilScript([9])) });
      rest = restClient(service.url);
    };
    const restart = async (between: () => void): Promise<void> => {
      await service.stop();
      between();
      await serve();
    };
    const list = async (): Promise<readonly HistoryRecord[]> =>
      rest.read(await rest.get('/api/runs/'), 200, 'history-list.json');
    const finished = async (): Promise<string> => {
      const runId = await rest.start();
      await rest.until(runId, isOver);
      return runId;
    };

    before(async () => {
      dir = tempDir();
      await serve();
      [corrupt, sound] = [await finished(), await finished()];
      const events = await recordOf(service.context.log, corrupt);
      const eventId = events.find(({ type }) => type === 'NodeCompleted')?.id ?? '';
      change = (piece) => damageEvent(dir.path, eventId, piece);
      await restart(() => change(['Draft 1', 'Draft 7']));
      rest.problem(await rest.get(`/api/runs/${corrupt}/events`), 500);
    });
    after(async () => {
      await service.stop();
      dir.remove();
    });

    it('export it as the list shows it, when it is selected too', async () => {
      for (const query of [`ids=${sound},${corrupt}`, 'sort=-created_at']) {
        const { status, text } = await rest.get(`/api/runs/export?format=ndjson&${query}`);
        expect(status, text).to.equal(200);
        const lines = text.trimEnd().split('\n');
        expect(lines.map((line): unknown => JSON.parse(line))).to.deep.equal(await list());
      }
    });

    it('count it as failed in the overview as in the list, before and after the views are made again', async () => {
      await assertCounted();
      await restart(() => rmSync(join(dir.path, 'views'), { recursive: true }));
      await assertCounted();
    });

    it('count it as completed again after its record is repaired', async () => {
      await restart(() => change(['Draft 7', 'Draft 1']));
      await rest.get(`/api/runs/${corrupt}/verify`);
      const { outcomes, councils } = rest.read(await rest.get('/api/overview'), 200, 'overview.json');
      expect(outcomes).to.include({ completed: 2, failed: 0 });
      expect(councils.map(({ usage }) => usage.calls)).to.deep.equal([6]);
    });

    async function assertCounted(): Promise<void> {
      const counts = rest.read(await rest.get('/api/runs/counts'), 200, 'run-counts.json');
      const { outcomes, councils } = rest.read(await rest.get('/api/overview'), 200, 'overview.json');
      expect(counts.outcomes).to.include({ completed: 1, failed: 1 });
      expect(outcomes).to.deep.equal(counts.outcomes);
      expect(councils.map(({ runs, usage }) => [runs, usage.calls])).to.deep.equal([[2, 3]]);
    }
  }),
);
