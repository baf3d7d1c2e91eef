/**
 * A service that kills itself at a chosen point of a delivery, as a power cut would. Takes a WebhookCrash as its argument;
 * prints its address.
 */
import { writeSync } from 'node:fs';
import { lookup } from 'node:dns/promises';
import { changedLog } from './changed-log.js';
import { instantModel } from './instant-model.js';
import { startService } from './running-service.js';

/** `send`: before an attempt. The others are around an append to the stream of the deliveries. */
export type DeliveryBoundary = 'send' | 'record unsent' | 'record sent' | 'record durable';

export interface WebhookCrash {
  readonly path: string;
  readonly boundary: DeliveryBoundary | null;
  /** Counts the attempts, or the appends, from 0. */
  readonly ordinal: number;
}

const crash = JSON.parse(process.argv[2] ?? '{}') as WebhookCrash;

function dieAt(boundary: DeliveryBoundary, ordinal: number): void {
  if (crash.boundary === boundary && crash.ordinal === ordinal) process.kill(process.pid, 'SIGKILL');
}

let [records, attempts] = [0, 0];
const service = await startService({
  dataDir: crash.path,
  model: instantModel(),
  webhookAllowPrivate: true,
  // The registration asks for the address too.
  resolveHost(hostname) {
    dieAt('send', attempts - 1);
    attempts += 1;
    return lookup(hostname, { all: true });
  },
  decorate: (log) =>
    changedLog(log, {
      async append(stream, events, expected) {
        if (!stream.startsWith('delivery-')) return await log.append(stream, events, expected);
        const ordinal = records;
        records += 1;
        dieAt('record unsent', ordinal);
        const appending = log.append(stream, events, expected);
        // The log hands its batch to its thread in the next turn. After that, the kill hits the write at any point.
        setImmediate(() => setImmediate(() => dieAt('record sent', ordinal)));
        const appended = await appending;
        dieAt('record durable', ordinal);
        return appended;
      },
    }),
});
writeSync(1, `${service.url}\n`);
