/** The thread of the stored read models: answers one call after the other. */
import type { MessagePort } from 'node:worker_threads';
import { parentPort, workerData } from 'node:worker_threads';
import type { DatabaseSyncInstance } from '@photostructure/sqlite';
import { serveRpc } from '../../system/worker-rpc.js';
import type { ViewsReady, ViewsTask } from './views-client.js';
import { createViewsFile, openViewsFile } from './views-file.js';
import type { ViewsStore } from './views-store.js';
import { viewsStore } from './views-store.js';

if (parentPort !== null) serve(parentPort, workerData as ViewsTask);

/** Serves the rows of a file over a message port. */
function serve(port: MessagePort, { file, log, isLost }: ViewsTask): void {
  const opened = isLost ? null : openViewsFile(file, log);
  if (opened !== null && 'refused' in opened) {
    serveRpc(port, { ready: opened satisfies ViewsReady, api: { close: () => undefined } });
    return;
  }
  const api = (opened && usable(opened, file)) ?? viewsStore(createViewsFile(file, log), file);
  const ready = { checkpoint: api.checkpoint, corruptRuns: api.corruptRuns() } satisfies ViewsReady;
  serveRpc(port, { ready, api });
}

/** The store of an opened file, or null if its tables cannot be read and the file must be recreated. */
function usable(database: DatabaseSyncInstance, file: string): ViewsStore | null {
  try {
    return viewsStore(database, file);
  } catch {
    database.close();
    return null;
  }
}
