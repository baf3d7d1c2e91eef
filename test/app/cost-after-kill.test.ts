import { expect } from 'chai';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { RunEventsPage, RunFacts } from '../../src/generated/schemas.js';
import type { FakeOpenAi } from '../support/fake-openai.js';
import { councilOf, fakeOpenAi } from '../support/fake-openai.js';
import { isOver, restClient } from '../support/rest-client.js';
import type { ServiceProcess } from '../support/service-process.js';
import { startServiceProcess } from '../support/service-process.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { onEmbeddedLog } from '../support/test-event-store.js';

onEmbeddedLog(() =>
  describe('The cost of a run whose service is killed', () => {
    let server: FakeOpenAi;
    let dir: TempDir;
    let service: ServiceProcess | null = null;

    beforeEach(async () => {
      [server, dir] = [await fakeOpenAi(), tempDir()];
    });
    afterEach(async () => {
      await service?.stop();
      await server.stop();
      dir.remove();
    });

    const start = (): Promise<ServiceProcess> =>
      startServiceProcess(dir.path, {
        environment: { OPENAI_API_KEY: 'sk-x', OPENAI_BASE_URL: server.url, OPENAI_MODEL: 'gpt-5.4' },
      });
    const costsIn = ({ events }: RunEventsPage): readonly number[] =>
      events
        .filter(({ type }) => type === 'NodeCompleted')
        .map(({ data }) => (data as RunFacts['NodeCompleted']).costUsd ?? Number.NaN);

    it('is the sum of all recorded costs, and counts the lost call as unpriced', async () => {
      const council = councilOf([9]);
      server.answerBy((call, index) => (index === 2 ? () => undefined : council(call, index)));
      service = await start();
      const runId = await restClient(service.url).start('Oaks');
      await server.until(() => server.calls.length === 3);
      const before = await restClient(service.url).poll(runId);
      expect(before.usage).to.include({ calls: 3, unpriced_calls: 1 });

      service.child.kill('SIGKILL');
      await service.stop();
      rmSync(join(dir.path, 'views'), { recursive: true, force: true });
      service = await start();
      const rest = restClient(service.url);
      const { status, usage } = await rest.until(runId, isOver);
      expect(status).to.equal('completed');
      const page = rest.read(await rest.get(`/api/runs/${runId}/events`), 200, 'run-events-page.json');
      const costs = costsIn(page);
      expect(costs).to.have.lengthOf(3);
      expect(usage?.cost_usd).to.be.above(before.usage?.cost_usd ?? Number.NaN);
      expect(usage?.cost_usd).to.be.closeTo(
        costs.reduce((sum, each) => sum + each, 0),
        1e-12,
      );
      expect(usage).to.include({ calls: 4, repeated_calls: 1, unpriced_calls: 1, unmetered_calls: 1 });
      const [listed] = rest.read(await rest.get('/api/runs/?limit=1'), 200, 'history-list.json');
      expect(listed?.usage).to.deep.equal(usage);
    });
  }),
);
