import { expect } from 'chai';
import type { EventLog, RecordedEvent } from '../../src/eventlog/port.js';
import { KeysCorrupt } from '../../src/keys/errors.js';
import { KeyStore } from '../../src/keys/store.js';
import { nodeSystem } from '../../src/system/system.js';
import { changedLog } from '../support/changed-log.js';
import { addFirstKey, bearer } from '../support/keys.js';
import { rejectionOf } from '../support/rejection.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { untilTrue } from '../support/until-true.js';

describe('A record of keys that was forged', () => {
  let dir: TempDir;
  let service: RunningService | null = null;
  /** The real log, without forged events. */
  let own: EventLog | null = null;
  let isForged = false;

  before(() => (dir = tempDir()));
  after(async () => {
    await service?.stop();
    dir.remove();
  });

  /** Replaces the revocation of a key by another use of it. */
  const forged = (event: RecordedEvent): RecordedEvent =>
    isForged && event.type === 'KeyRevoked' ? { ...event, type: 'KeyUsed' } : event;
  const decorate = (log: EventLog): EventLog => {
    own = log;
    return changedLog(log, {
      async *readStream(stream, range) {
        for await (const event of log.readStream(stream, range)) yield forged(event);
      },
      async *subscribe(after, following) {
        for await (const followed of log.subscribe(after, following)) {
          yield followed.kind === 'event' ? { ...followed, event: forged(followed.event) } : followed;
        }
      },
    });
  };

  /** Appends through another instance, whose log is not forged. */
  async function revokedElsewhere(): Promise<void> {
    const log = own ?? expect.fail('There is no log');
    const other = new KeyStore({ log, system: nodeSystem(), instanceId: 'other', onFault: () => undefined });
    await other.load();
    await other.revoke('first', null);
    await other.stop();
  }

  it('grants no access, while the service runs and at its next start', async () => {
    service = await startService({ dataDir: dir.path, decorate });
    const { url } = service;
    const key = await addFirstKey(url);
    const asked = async (): Promise<number> => (await fetch(`${url}/api/runs/`, { headers: bearer(key) })).status;
    expect(await asked()).to.equal(200);
    isForged = true;
    await revokedElsewhere();
    await untilTrue(async () => (await asked()) === 500);
    expect((await fetch(`${url}/api/health`)).status).to.equal(200);
    const { detail } = (await (await fetch(`${url}/api/runs/`)).json()) as { detail: string };
    expect(detail).to.include('The record of the keys is damaged');

    await service.stop();
    service = null;
    expect(await rejectionOf(startService({ dataDir: dir.path, decorate }))).to.be.instanceOf(KeysCorrupt);
  });
});
