/** The thread of the stored read models: answers one call after the other. */
import { parentPort, workerData } from 'node:worker_threads';
import { serveCalls } from '../worker-calls.js';
import type { ViewsReady, ViewsSetup } from './views-client.js';
import { openViewsFile } from './views-file.js';
import { viewsStore } from './views-store.js';

const setup = workerData as ViewsSetup;
const opened = openViewsFile(setup.file, setup.log);
if ('refused' in opened) {
  const told: ViewsReady = opened;
  serveCalls(parentPort, { service: { close: () => undefined }, told });
} else {
  const service = viewsStore(opened);
  const told: ViewsReady = { checkpoint: service.checkpoint };
  serveCalls(parentPort, { service, told });
}
