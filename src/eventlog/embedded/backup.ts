/**
 * Backs up an open log. The log's thread only reads slices of rows, so appends wait at most for one slice. A thread of its own
 * writes them, verifies the copy and names it (backup-worker.ts): a slow disk or network share delays the backup alone.
 */
import { dirname } from 'node:path';
import { BackupFailed, BackupRefused } from '../errors.js';
import type { BackedUp, BackupOptions } from '../port.js';
import { CallFailed, WorkerRpc } from '../../system/worker-rpc.js';
import type { BackupReady, BackupTask, LogExtent, RowSlice, ServedBackup, StoredRow } from './messages.js';
import { TABLES } from './messages.js';

/** What a backup reads of the log. */
export interface BackupSource {
  /** The log's file. */
  readonly file: string;
  extent(): Promise<LogExtent>;
  rows(slice: RowSlice): Promise<readonly StoredRow[]>;
}

/** As `EventLog.backup`. */
export async function backUp(source: BackupSource, to: string, options: BackupOptions): Promise<BackedUp> {
  let extent = await source.extent();
  const task: BackupTask = { to, dataDir: dirname(source.file), extent };
  const module = new URL('./backup-worker.js', import.meta.url);
  const copy = new WorkerRpc<BackupReady, ServedBackup>(module, task, "The backup's thread");
  try {
    const { refused } = await copy.ready();
    if (refused !== null) throw new BackupRefused({ to, reason: refused });
    // Again if streams were removed meanwhile: the copy then lacks them, and must have what was recorded before.
    for (let [from, isWhole] = [NOTHING, false]; !isWhole;) {
      await copyRows(source, copy, { from, extent, ...options });
      const latest = await source.extent();
      isWhole = latest.lastRemoved === extent.lastRemoved;
      if (!isWhole) [from, extent] = [extent, latest];
    }
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

const NOTHING = { lastStream: 0, position: 0, lastRemoved: 0 };

async function copyRows(
  source: BackupSource,
  copy: Copy,
  { from, extent, signal, onProgress }: Steps & { readonly from: typeof NOTHING },
): Promise<void> {
  const starts = { streams: from.lastStream, events: from.position, removed: from.lastRemoved };
  const ends = { streams: extent.lastStream, events: extent.position, removed: extent.lastRemoved };
  onProgress({ state: 'copying', events: 0, of: extent.position });
  for (const table of TABLES) {
    for (let after = starts[table]; ;) {
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
    const events = await copy.call('verify', extent);
    if (events === null) return;
    onProgress({ state: 'verifying', events, of: extent.position });
  }
}
