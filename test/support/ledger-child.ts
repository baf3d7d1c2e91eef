/**
 * A service that kills itself at a chosen point of an append to the ledger or to its checkpoints, as a power cut would. Takes a
 * LedgerCrash as its argument; prints its address.
 */
import { writeSync } from 'node:fs';
import { changedLog } from './changed-log.js';
import { instantModel } from './instant-model.js';
import { LEDGER_AT_ONCE } from './ledger.js';
import { startService } from './running-service.js';

export type LedgerBoundary = 'unsent' | 'sent' | 'durable';

export interface LedgerCrash {
  readonly path: string;
  readonly stream: 'ledger' | 'checkpoints';
  readonly boundary: LedgerBoundary;
}

const crash = JSON.parse(process.argv[2] ?? '{}') as LedgerCrash;

function dieAt(boundary: LedgerBoundary): void {
  if (crash.boundary === boundary) process.kill(process.pid, 'SIGKILL');
}

const service = await startService({
  dataDir: crash.path,
  model: instantModel(),
  ledger: LEDGER_AT_ONCE,
  decorate: (log) =>
    changedLog(log, {
      async append(stream, events, expected) {
        if (stream !== crash.stream) return await log.append(stream, events, expected);
        dieAt('unsent');
        const appending = log.append(stream, events, expected);
        // The log hands its batch to its thread in the next turn. After that, the kill hits the write at any point.
        setImmediate(() => setImmediate(() => dieAt('sent')));
        const appended = await appending;
        dieAt('durable');
        return appended;
      },
    }),
});
writeSync(1, `${service.url}\n`);
