/** The embedded log that a folder holds while the record is on a server: it is not read, so that what it holds is told. */
import { existsSync } from 'node:fs';
import { ConfigInvalid } from '../errors.js';
import { openLogReadOnly } from '../eventlog/embedded/read-only.js';
import type { ReadOnlyLog } from '../eventlog/embedded/read-only.js';
import { LogUnreadable } from '../eventlog/port.js';
import { KEYS_STREAM, keyEventReader } from '../keys/events.js';
import { KeysCorrupt } from '../keys/errors.js';
import type { Key } from '../keys/state.js';
import { KeyRing } from '../keys/state.js';
import type { System } from '../system/system.js';

export interface LogInFolderDeps {
  readonly system: Pick<System, 'sha256'>;
  /** The keys of the log that is used. */
  readonly keys: readonly Key[];
}

/**
 * The warning about an embedded log that is not read, or null if there is none.
 *
 * @throws {ConfigInvalid} it holds a key that the log in use has not: the service would no longer ask for it
 */
export async function noticeOfLog(file: string, { system, keys }: LogInFolderDeps): Promise<string | null> {
  if (!existsSync(file)) return null;
  const found = await contentsOf(file, system);
  if (typeof found === 'string') return `${file} is not read, as EVENTSTORE_URL is set. ${found}`;
  const known = new Set(keys.map(({ hash }) => hash));
  const missing = found.keys.filter(({ hash }) => !known.has(hash));
  if (missing.length === 0) {
    const what = CATEGORIES.map((name) => counted(found.streams.get(name) ?? 0, name)).join(', ');
    return `${file} holds ${what} and is not read, as EVENTSTORE_URL is set: copy it with "council migrate" if you have not, then move it away`;
  }
  const accepted =
    `a log that has the ${counted(missing.length, 'key')} of ${file} ` +
    '(stop the service and copy that log with "council migrate", or move the file away)';
  throw new ConfigInvalid({ variable: 'EVENTSTORE_URL', value: '(hidden)', accepted });
}

/** Categories of the streams that are told, each of which is also the word for one of its records. */
const CATEGORIES = ['run', 'blueprint', 'document'];

interface Contents {
  readonly keys: readonly Key[];
  readonly streams: ReadonlyMap<string, number>;
}

/** What a log holds, or why it cannot be read. */
async function contentsOf(file: string, { sha256 }: LogInFolderDeps['system']): Promise<Contents | string> {
  let log: ReadOnlyLog | null = null;
  try {
    log = openLogReadOnly(file);
    const ring = new KeyRing();
    for await (const event of keyEventReader.read(log, KEYS_STREAM, { sha256 })) ring.take(event);
    return { keys: ring.all(), streams: log.streams() };
  } catch (error) {
    if (error instanceof LogUnreadable || error instanceof KeysCorrupt) return error.message;
    throw error;
  } finally {
    log?.close();
  }
}

function counted(count: number, name: string): string {
  return `${count} ${name}${count === 1 ? '' : 's'}`;
}
