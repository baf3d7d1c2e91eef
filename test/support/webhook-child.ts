/**
 * A service that kills itself at a chosen point of a delivery, as a power cut would. Takes a WebhookCrash as its argument;
 * prints its address.
 */
import { writeSync } from 'node:fs';
import { lookup } from 'node:dns/promises';
import { instantModel } from './instant-model.js';
import type { AppendBoundary } from './mortal-log.js';
import { deathAt, mortalLog } from './mortal-log.js';
import { startService } from './running-service.js';

export interface WebhookCrash {
  readonly path: string;
  /** `send`: before an attempt. The others are around an append to the stream of the deliveries. Null: none. */
  readonly boundary: AppendBoundary | 'send' | null;
  /** Counts the attempts, or the appends, from 0. */
  readonly ordinal: number;
}

const { path, boundary, ordinal } = JSON.parse(process.argv[2] ?? '{}') as WebhookCrash;
const dieAt = deathAt(boundary === null ? null : { boundary, ordinal });

let attempts = 0;
const service = await startService({
  dataDir: path,
  model: instantModel(),
  webhookAllowPrivate: true,
  // The registration asks for the address too.
  resolveHost(hostname) {
    dieAt('send', attempts - 1);
    attempts += 1;
    return lookup(hostname, { all: true });
  },
  decorate: (log) => mortalLog(log, (stream) => stream.startsWith('delivery-'), dieAt),
});
writeSync(1, `${service.url}\n`);
