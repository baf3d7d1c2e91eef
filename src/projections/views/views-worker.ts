/** The thread of the stored read models: answers one call after the other. */
import type { MessagePort } from 'node:worker_threads';
import { parentPort, workerData } from 'node:worker_threads';
import { serveRpc } from '../../system/worker-rpc.js';
import type { ViewsReady, ViewsOptions } from './views-client.js';
import { beginViewsFile, openViewsFile } from './views-file.js';
import { readableViews, renewableViews } from './views-renewal.js';
import { viewsStore } from './views-store.js';

// Else it was imported for `serve`.
if (parentPort !== null && workerData !== undefined) serve(parentPort, workerData as ViewsOptions);

/** Serves the rows of a file over a message port. */
export function serve(port: MessagePort, { file, log }: ViewsOptions): void {
  const opened = openViewsFile(file, log);
  if ('refused' in opened) {
    serveRpc(port, { ready: opened satisfies ViewsReady, api: { close: () => undefined } });
    return;
  }
  const begin = () => viewsStore(beginViewsFile(file, log.identity));
  const beginInPlace = () => {
    opened.close();
    return begin();
  };
  const stored = readableViews(() => viewsStore(opened), beginInPlace);
  const api = renewableViews(stored, begin);
  serveRpc(port, { ready: { checkpoint: api.checkpoint } satisfies ViewsReady, api });
}
