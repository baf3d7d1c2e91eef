/**
 * A service that kills itself at a chosen point of an append to the ledger or to its checkpoints, as a power cut would. Takes a
 * LedgerCrash as its argument; prints its address.
 */
import { writeSync } from 'node:fs';
import { instantModel } from './instant-model.js';
import { LEDGER_AT_ONCE } from './ledger.js';
import type { AppendBoundary } from './mortal-log.js';
import { deathAt, mortalLog } from './mortal-log.js';
import { startService } from './running-service.js';

export interface LedgerCrash {
  readonly path: string;
  readonly stream: 'ledger' | 'checkpoints';
  readonly boundary: AppendBoundary;
}

const crash = JSON.parse(process.argv[2] ?? '{}') as LedgerCrash;

const service = await startService({
  dataDir: crash.path,
  model: instantModel(),
  ledger: LEDGER_AT_ONCE,
  decorate: (log) => mortalLog(log, (stream) => stream === crash.stream, deathAt({ ...crash, ordinal: 0 })),
});
writeSync(1, `${service.url}\n`);
