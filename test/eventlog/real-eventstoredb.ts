/**
 * The contract of the EventLog port over a real server: `EVENTSTORE_URL=esdb://... npm run test:eventstore`. The server
 * may hold other streams, because all names of this test run begin with their own prefix.
 */
import { randomUUID } from 'node:crypto';
import { nodeSystem } from '../../src/system/system.js';
import { openEventStoreLog } from '../../src/eventlog/eventstoredb/log.js';
import { eventLogContract } from './event-log-contract.js';

const url = process.env['EVENTSTORE_URL'] ?? '';
const prefix = `t${randomUUID().replaceAll('-', '')}`;

if (url === '') {
  process.stdout.write('EVENTSTORE_URL is not set: nothing was tested against a real EventStoreDB.\n');
} else {
  process.stdout.write(`Against a real server, streams named ${prefix}...\n`);
  eventLogContract('EventStoreDB, a real server', async () => {
    const log = openEventStoreLog({ url, prefix, system: nodeSystem() });
    return { log, prefix: '', close: () => log.close() };
  });
}
