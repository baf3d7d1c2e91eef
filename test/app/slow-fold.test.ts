import { expect } from 'chai';
import { heldLog } from '../support/held-log.js';
import { instantModel } from '../support/instant-model.js';
import { passingSystem } from '../support/passing-time.js';
import { restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { untilTrue } from '../support/until-true.js';

/** How long a list waits for its views, in milliseconds. */
const LIST_WAIT_MS = 5_000;

describe('A service whose views are behind the log', () => {
  let service: RunningService | null = null;

  afterEach(async () => {
    await service?.stop();
    service = null;
  });

  it('listens before its views are folded, but is not ready and starts no run before recovery', async () => {
    const log = heldLog();
    log.hold();
    service = await startService({ model: instantModel(), decorate: log.decorate });
    const rest = restClient(service.url);
    rest.read(await rest.get('/api/health'), 200, 'health.json');
    rest.problem(await rest.get('/api/health/ready'), 503);
    let isStarted = false;
    const starting = rest.start().then((id) => {
      isStarted = true;
      return id;
    });
    rest.problem(await rest.get('/api/health/ready'), 503);
    expect(isStarted).to.equal(false);
    log.release();
    const id = await starting;
    await rest.until(id, ({ status }) => status === 'completed');
    rest.read(await rest.get('/api/health/ready'), 200, 'readiness.json');
  });

  it('is ready while its views are so little behind the log that lists wait for them, not ready beyond, and ready once they catch up', async () => {
    const log = heldLog();
    const system = passingSystem([]);
    service = await startService({ model: instantModel(), decorate: log.decorate, system });
    const rest = restClient(service.url);
    rest.read(await rest.get('/api/health/ready'), 200, 'readiness.json');
    log.hold();
    await rest.start();
    rest.read(await rest.get('/api/health/ready'), 200, 'readiness.json');
    system.pass(LIST_WAIT_MS + 1);
    rest.problem(await rest.get('/api/health/ready'), 503);
    log.release();
    await untilTrue(async () => (await rest.get('/api/health/ready')).status === 200);
  });

  it('never answers an incomplete list: answers 503 at the deadline, and the complete list once the views have caught up', async () => {
    const log = heldLog();
    const system = passingSystem([LIST_WAIT_MS]);
    service = await startService({ model: instantModel(), decorate: log.decorate, system });
    const rest = restClient(service.url);
    log.hold();
    const id = await rest.start();
    for (const path of ['/api/runs/', '/api/councils/', '/api/documents/']) {
      const { detail } = rest.problem(await rest.get(path), 503);
      expect(detail).to.equal('The lists are not up to date yet: they are being folded');
    }
    log.release();
    await untilTrue(async () => (await rest.get('/api/runs/')).text.includes(id));
  });
});
