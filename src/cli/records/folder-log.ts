/** Finds the embedded log in a data directory and opens it for reading while no service runs on it. */
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { readConfig } from '../../config.js';
import { ConfigInvalid } from '../../errors.js';
import { dataDirectoryHolder } from '../../app/data-directory.js';
import type { ReadOnlyLog } from '../../eventlog/embedded/read-only.js';
import { openLogReadOnly } from '../../eventlog/embedded/read-only.js';
import { DataDirHeld } from '../../eventlog/errors.js';

/** @throws {DataDirHeld} with the process that uses it; else as openLogReadOnly */
export function openFolderLog(folder: string): ReadOnlyLog {
  const path = resolve(folder);
  try {
    return openLogReadOnly(join(path, 'log.sqlite'));
  } catch (error) {
    throw error instanceof DataDirHeld ? new DataDirHeld({ path, holder: dataDirectoryHolder(path) }) : error;
  }
}

/** The folder of the embedded log. @throws {ConfigInvalid} there is no folder, or the log is on a server */
export function folderOfLog(env: NodeJS.ProcessEnv): string {
  if (readConfig(env).eventStore !== null) {
    const accepted = 'only an empty value (this command reads the embedded log)';
    throw new ConfigInvalid({ variable: 'EVENTSTORE_URL', value: '(set)', accepted });
  }
  return folderIn(env);
}

/** The data directory. @throws {ConfigInvalid} there is none */
export function folderIn(env: NodeJS.ProcessEnv): string {
  const { dataDir } = readConfig(env);
  if (!existsSync(dataDir)) throw new ConfigInvalid({ variable: 'DATA_DIR', value: dataDir, accepted: 'a folder' });
  return resolve(dataDir);
}
