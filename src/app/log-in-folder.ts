/** Describes an embedded log that lies unused in the data directory, because EVENTSTORE_URL is set. */
import { existsSync } from 'node:fs';
import { withoutSecrets } from '../config-values.js';
import { ConfigInvalid } from '../errors.js';
import { openLogReadOnly } from '../eventlog/embedded/read-only.js';
import type { ReadOnlyLog } from '../eventlog/embedded/read-only.js';
import { LogUnreadable } from '../eventlog/port.js';
import { KEYS_STREAM, keyEventReader } from '../keys/events.js';
import { KeysCorrupt } from '../keys/errors.js';
import type { Key } from '../keys/store.js';
import { KeyRing } from '../keys/store.js';
import type { System } from '../system/system.js';

export interface LogInFolderDeps {
  readonly system: Pick<System, 'sha256'>;
  /** The server's connection string. */
  readonly url: string;
  /** The keys of the server's log. */
  readonly keys: readonly Key[];
}

/**
 * The warning about an unused embedded log, or null if there is none.
 *
 * @throws {ConfigInvalid} if it holds a key that the server's log lacks, or cannot be read and so may hold one: the service
 *   would no longer ask for that key
 */
export async function unusedLogWarning(file: string, { system, url, keys }: LogInFolderDeps): Promise<string | null> {
  if (!existsSync(file)) return null;
  const refusal = (accepted: string): ConfigInvalid =>
    new ConfigInvalid({ variable: 'EVENTSTORE_URL', value: withoutSecrets(url), accepted });
  const found = await contentsOf(file, system);
  if (typeof found === 'string') {
    const why = `because the service cannot check the keys in it (${found.replaceAll(/\s+/g, ' ')})`;
    throw refusal(`this server after you repair ${file} or move it away, ${why}`);
  }
  const known = new Set(keys.map(({ hash }) => hash));
  const missing = found.keys.filter(({ hash }) => !known.has(hash));
  if (missing.length === 0) {
    const what = CATEGORIES.map((name) => counted(found.streams.get(name) ?? 0, name)).join(', ');
    return `EVENTSTORE_URL is set, so the service does not read ${file}, which holds ${what}: copy it with "council migrate" if you have not, then move it away`;
  }
  throw refusal(
    `"council migrate" to copy ${file} to this server first, because that log has ` +
      `${counted(missing.length, 'key')} that the server lacks, or move that file away`,
  );
}

/** Categories of streams that the warning counts. Each is also the English word for one of its records. */
const CATEGORIES = ['run', 'blueprint', 'document'];

interface Contents {
  readonly keys: readonly Key[];
  readonly streams: ReadonlyMap<string, number>;
}

/** The contents of a log, or the reason why it cannot be read. */
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
