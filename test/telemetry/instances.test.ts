import { expect } from 'chai';
import { changedLog } from '../support/changed-log.js';
import { fakeServer, sends } from '../support/fake-server.js';
import type { OtlpRequest } from '../support/otlp-traces.js';
import { spansIn } from '../support/otlp-traces.js';
import { parseMetrics, valueOf } from '../support/prometheus-text.js';
import { isOver, restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { openSharedLog } from '../support/shared-log.js';
import { tempDir } from '../support/temp-dir.js';
import { untilTrue } from '../support/until-true.js';
import { soakIt } from '../support/soak.js';

describe('Two instances of one log', () => {
  soakIt('count and export each run once, where its events are appended, and agree on the figures of all', async () => {
    const dir = tempDir();
    const shared = await openSharedLog(dir.path);
    const collector = await fakeServer<OtlpRequest>([sends({})]);
    const open = (): Promise<RunningService> => {
      const { log } = shared.line();
      const traces = { endpoint: collector.url, headers: {}, delayMs: 500 };
      return startService({ traces, decorate: (own) => changedLog(log, { close: () => own.close() }) });
    };
    const [here, there] = [await open(), await open()];
    const figures = async (name: string, labels = {}): Promise<readonly number[]> =>
      await Promise.all(
        [here, there].map(async ({ url }) =>
          valueOf(parseMetrics(await (await fetch(`${url}/metrics`)).text()), name, labels),
        ),
      );
    try {
      const rest = restClient(here.url);
      await rest.until(await rest.start(), isOver);
      const nodes = [{ id: 'a', type: 'agent', label: 'A' }];
      rest.read(await rest.post('/api/councils/', { id: 'one', name: 'One', nodes, edges: [] }), 201, 'blueprint.json');
      const started = await rest.post('/api/councils/one/run', { input_topic: 'Seas', god_mode: true });
      const { run_id: waiting } = rest.read(started, 202, 'run-start.json');
      await rest.until(waiting, ({ status }) => status === 'paused');
      expect(await figures('council_runs_started_total')).to.deep.equal([2, 0]);
      expect(await figures('council_approvals_waiting')).to.deep.equal([1, 1]);

      // The instance that takes the decision continues the run, and records its end.
      const other = restClient(there.url);
      await other.post(`/api/councils/run/${waiting}/approve`, { action: 'approve' });
      await other.until(waiting, isOver);
      expect(await figures('council_runs_ended_total', { status: 'completed' })).to.deep.equal([1, 1]);
      expect(await figures('council_approvals_waiting')).to.deep.equal([0, 0]);
      await untilTrue(async () => (await figures('council_traces_total', { outcome: 'exported' })).join() === '1,1');
      const names = collector.calls.map(({ body }) => spansIn(body).map(({ name }) => name));
      expect(names[1]).to.have.members(['invoke_workflow One', 'wait_for_human', 'invoke_agent A']);
    } finally {
      await Promise.all([here.stop(), there.stop()]);
      await collector.stop();
      await shared.close();
      dir.remove();
    }
  });
});
