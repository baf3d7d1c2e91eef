/** The thread of the stored read models: answers one call after the other. */
import { parentPort, workerData } from 'node:worker_threads';
import { serveRpc } from '../../system/worker-rpc.js';
import type { ViewsReady, ViewsOptions } from './views-client.js';
import { beginViewsFile, openViewsFile } from './views-file.js';
import { readableViews, renewableViews } from './views-renewal.js';
import { viewsStore } from './views-store.js';

const options = workerData as ViewsOptions;
const opened = openViewsFile(options.file, options.log);
if ('refused' in opened) {
  serveRpc(parentPort, { ready: opened satisfies ViewsReady, api: { close: () => undefined } });
} else {
  const begin = () => viewsStore(beginViewsFile(options.file, options.log.identity));
  const beginInPlace = () => {
    opened.close();
    return begin();
  };
  const stored = readableViews(() => viewsStore(opened), beginInPlace);
  const api = renewableViews(stored, begin);
  serveRpc(parentPort, { ready: { checkpoint: api.checkpoint } satisfies ViewsReady, api });
}
