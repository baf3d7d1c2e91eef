/**
 * Backs up an open log. The log's thread only reads slices of rows, so appends wait at most for one slice. A thread of its own
 * writes them, verifies the copy and names it (backup-worker.ts): a slow disk or network share delays the backup alone.
 */
import { dirname } from 'node:path';
import { BackupFailed, BackupRefused } from '../errors.js';
import type { BackedUp, BackupOptions } from '../port.js';
import { CallFailed, WorkerRpc } from '../../system/worker-rpc.js';
import type { BackupReady, BackupTask, LogExtent, RowSlice, ServedBackup, StoredRow } from './messages.js';

/** What a backup reads of the log. */
export interface BackupSource {
  /** The log's file. */
  readonly file: string;
  extent(): Promise<LogExtent>;
  rows(slice: RowSlice): Promise<readonly StoredRow[]>;
}

/** As `EventLog.backup`. */
export async function backUp(source: BackupSource, to: string, options: BackupOptions): Promise<BackedUp> {
  const extent = await source.extent();
  const task: BackupTask = { to, dataDir: dirname(source.file), extent };
  const module = new URL('./backup-worker.js', import.meta.url);
  const copy = new WorkerRpc<BackupReady, ServedBackup>(module, task, "The backup's thread");
  try {
    const { refused } = await copy.ready();
    if (refused !== null) throw new BackupRefused({ to, reason: refused });
    await copyRows(source, copy, { extent, ...options });
    await verify(copy, { extent, ...options });
    await copy.call('name');
    return { events: extent.position };
  } catch (error) {
    throw error instanceof CallFailed ? new BackupFailed({ to, reason: error.reason }, { cause: error }) : error;
  } finally {
    // Removes the copy, if it has no name yet.
    await copy.close();
  }
}

type Copy = WorkerRpc<BackupReady, ServedBackup>;

interface Steps extends BackupOptions {
  readonly extent: LogExtent;
}

async function copyRows(source: BackupSource, copy: Copy, { extent, signal, onProgress }: Steps): Promise<void> {
  const ends = { streams: extent.lastStream, events: extent.position } as const;
  onProgress({ state: 'copying', events: 0, of: extent.position });
  for (const table of ['streams', 'events'] as const) {
    for (let after = 0; ;) {
      signal.throwIfAborted();
      const rows = await source.rows({ table, after, until: ends[table] });
      const last = rows.at(-1);
      if (last === undefined) break;
      await copy.call('insert', table, rows);
      after = Number(last[0]);
      if (table === 'events') onProgress({ state: 'copying', events: after, of: extent.position });
    }
  }
}

async function verify(copy: Copy, { extent, signal, onProgress }: Steps): Promise<void> {
  for (;;) {
    signal.throwIfAborted();
    const events = await copy.call('verify');
    if (events === null) return;
    onProgress({ state: 'verifying', events, of: extent.position });
  }
}
