import { join } from 'node:path';
import { nodeSystem } from '../../src/system/system.js';
import { openEventStoreLog } from '../../src/eventlog/eventstoredb/log.js';
import { fakeEventStore } from '../support/fake-event-store.js';
import { tempDir } from '../support/temp-dir.js';
import { eventLogContract } from './event-log-contract.js';

/** Long, because a busy machine may answer late, also to a ping. */
const DEADLINE_MS = 60_000;

eventLogContract('EventStoreDB, a fake server', async () => {
  const dir = tempDir();
  const server = await fakeEventStore(join(dir.path, 'server.sqlite'));
  const url = `${server.url}&keepAliveTimeout=${DEADLINE_MS}`;
  const log = openEventStoreLog({ url, prefix: 'test', system: nodeSystem(), deadlineMs: DEADLINE_MS });
  const close = async (): Promise<void> => {
    await log.close();
    await server.stop();
    dir.remove();
  };
  return { log, prefix: '', close };
});
