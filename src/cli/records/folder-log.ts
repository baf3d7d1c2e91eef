/** Opens the embedded log in a data directory for reading, while no service runs on it. */
import { join, resolve } from 'node:path';
import { dataDirectoryHolder } from '../../app/data-directory.js';
import type { ReadOnlyLog } from '../../eventlog/embedded/read-only.js';
import { openLogReadOnly } from '../../eventlog/embedded/read-only.js';
import { DataDirHeld } from '../../eventlog/errors.js';

/** @throws {DataDirHeld} naming the process that has it; else as openLogReadOnly does */
export function openFolderLog(folder: string): ReadOnlyLog {
  const path = resolve(folder);
  try {
    return openLogReadOnly(join(path, 'log.sqlite'));
  } catch (error) {
    throw error instanceof DataDirHeld ? new DataDirHeld({ path, holder: dataDirectoryHolder(path) }) : error;
  }
}
