import { LogUnavailable } from '../../src/eventlog/errors.js';
import { changedLog } from '../support/changed-log.js';
import { instantModel } from '../support/instant-model.js';
import { passingSystem } from '../support/passing-time.js';
import { restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { untilTrue } from '../support/until-true.js';

const CLUSTER = { heartbeatMs: 9_000, suspectAfterMs: 60_000 };
/** Intervals of a cluster's timers: heartbeats, and checks for orphans. */
const INTERVALS = [CLUSTER.heartbeatMs, 1_000];

describe('A service whose log accepts no heartbeat', () => {
  let service: RunningService | null = null;

  afterEach(async () => {
    await service?.stop();
    service = null;
  });

  it('is not ready although the log answers, and is ready again after the log accepts a heartbeat', async () => {
    let isTaken = true;
    const system = passingSystem(INTERVALS);
    const { url, faults } = (service = await startService({
      model: instantModel(),
      system,
      cluster: CLUSTER,
      decorate: (log) =>
        changedLog(log, {
          append: (stream, events, expected) =>
            isTaken || !stream.startsWith('instance-')
              ? log.append(stream, events, expected)
              : Promise.reject(new LogUnavailable()),
        }),
    }));
    const rest = restClient(url);
    rest.read(await rest.get('/api/health/ready'), 200, 'readiness.json');
    isTaken = false;
    // It logs when it abandons its runs. The log may first have acknowledged a heartbeat that was in flight.
    await untilTrue(() => {
      system.pass(CLUSTER.suspectAfterMs);
      return faults.some((fault) => 'instanceId' in fault);
    });
    rest.problem(await rest.get('/api/health/ready'), 503);
    isTaken = true;
    await untilTrue(async () => (await rest.get('/api/health/ready')).status === 200);
  });
});
