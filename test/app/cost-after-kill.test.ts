import { expect } from 'chai';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { RunEventsPage, RunFacts } from '../../src/generated/schemas.js';
import { councilOf } from '../support/fake-openai.js';
import { isOver, restClient } from '../support/rest-client.js';
import { restartedService } from '../support/restarted-service.js';
import { onEmbeddedLog } from '../support/test-event-store.js';
import { soakIt } from '../support/soak.js';

onEmbeddedLog(() =>
  describe('The cost of a run whose service is killed', () => {
    const restarted = restartedService();

    const costsIn = ({ events }: RunEventsPage): readonly number[] =>
      events
        .filter(({ type }) => type === 'NodeCompleted')
        .map(({ data }) => (data as RunFacts['NodeCompleted']).costUsd ?? Number.NaN);

    soakIt('is the sum of all recorded costs, and counts the lost call as unpriced', async () => {
      const { server, path } = restarted;
      const council = councilOf([9]);
      server.answerBy((call, index) => (index === 2 ? () => undefined : council(call, index)));
      const killed = await restarted.start();
      const runId = await restClient(killed.url).start('Oaks');
      await server.until(() => server.calls.length === 3);
      const before = await restClient(killed.url).poll(runId);
      expect(before.usage).to.include({ calls: 3, unpriced_calls: 1 });

      await restarted.kill(killed);
      rmSync(join(path, 'views'), { recursive: true, force: true });
      const rest = restClient((await restarted.start()).url);
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
