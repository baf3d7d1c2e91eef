import { expect } from 'chai';
import type { RestClient } from '../support/rest-client.js';
import { restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { changedLog } from '../support/changed-log.js';
import type { ScriptedModel } from '../support/scripted-model.js';
import { scriptedModel } from '../support/scripted-model.js';
import { untilTrue } from '../support/until-true.js';

describe('GET /api/runs/counts while a run starts', () => {
  let service: RunningService;
  let rest: RestClient;
  let model: ScriptedModel;
  /** Holds all questions for the head of the log but the next one. */
  let hold: Promise<void> | null = null;
  let asked = 0;

  before(async () => {
    model = scriptedModel(() => 'hold');
    service = await startService({
      model,
      maxActiveRuns: 1,
      decorate: (log) =>
        changedLog(log, {
          async head() {
            if (hold !== null && (asked += 1) > 1) await hold;
            return await log.head();
          },
        }),
    });
    rest = restClient(service.url);
  });
  after(() => service.stop());

  it('counts it once', async () => {
    const first = await rest.start();
    await model.called(1);
    const second = await rest.start();
    await rest.until(second, ({ status }) => status === 'pending');
    let release = (): void => undefined;
    hold = new Promise((resolve) => (release = resolve));
    const counting = rest.get('/api/runs/counts');
    await untilTrue(async () => asked > 0);
    await rest.post(`/api/councils/run/${first}/cancel`, {});
    await rest.until(second, ({ status }) => status === 'running');
    release();
    const counts = rest.read(await counting, 200, 'run-counts.json');
    expect(counts.all, JSON.stringify(counts)).to.equal(2);
  });
});
