import { expect } from 'chai';
import type { EventLog } from '../../src/eventlog/port.js';
import { changedLog } from '../support/changed-log.js';
import { instantModel } from '../support/instant-model.js';
import { restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';

describe('A service whose views have much to fold', () => {
  let service: RunningService | null = null;

  afterEach(async () => {
    await service?.stop();
    service = null;
  });

  /** A log whose subscription gives nothing while it is held. */
  function heldLog(): { decorate(log: EventLog): EventLog; hold(): void; release(): void } {
    let held = Promise.resolve();
    let release = (): void => undefined;
    const hold = (): void => {
      held = new Promise((resolve) => (release = resolve));
    };
    return {
      decorate: (log) =>
        changedLog(log, {
          async *subscribe(after, following) {
            for await (const followed of log.subscribe(after, following)) {
              await held;
              yield followed;
            }
          },
        }),
      hold,
      release: () => release(),
    };
  }

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

  it('is not ready while its views fall behind the log, and ready again once they have caught up', async () => {
    const log = heldLog();
    service = await startService({ model: instantModel(), decorate: log.decorate });
    const rest = restClient(service.url);
    rest.read(await rest.get('/api/health/ready'), 200, 'readiness.json');
    log.hold();
    await rest.start();
    rest.problem(await rest.get('/api/health/ready'), 503);
    log.release();
    rest.read(await rest.get('/api/health/ready'), 200, 'readiness.json');
  });
});
