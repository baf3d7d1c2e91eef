/** Reads and changes the keys on the log itself. It needs no key: a user who can write the log can do everything. */
import { existsSync } from 'node:fs';
import { hostname } from 'node:os';
import { join, resolve } from 'node:path';
import { logFilesIn, openDataDirectory } from '../../app/data-directory.js';
import { checkSeenLog } from '../../app/seen-log.js';
import { keyRecord } from '../../api/serializers/keys.js';
import type { Config } from '../../config.js';
import { openLog } from '../../eventlog/open.js';
import type { EventLog } from '../../eventlog/port.js';
import { LogUnreadable } from '../../eventlog/port.js';
import type { Key as KeyRecord } from '../../generated/schemas.js';
import { KEYS_STREAM, keyEventReader } from '../../keys/events.js';
import { expiryIn } from '../../keys/key-request.js';
import { KeyRing, KeyStore } from '../../keys/store.js';
import type { System } from '../../system/system.js';
import type { KeyBook } from './service-keys.js';
import { openFolderLog } from './folder-log.js';

/** The keys on the log that the settings name. No process may use its folder. `list` changes nothing. */
export function logKeys(config: Pick<Config, 'dataDir' | 'eventStore'>, system: System): KeyBook {
  const change = <T>(act: (keys: KeyStore) => Promise<T>): Promise<T> =>
    onLog(config, system, async (log) => {
      const keys = new KeyStore({ log, system, instanceId: system.uuid(), onFault: () => undefined });
      try {
        return await act(keys);
      } finally {
        await keys.stop();
      }
    });
  return {
    add: ({ expires, ...wanted }) =>
      change(async (keys) => {
        const expiresAt = expires === null ? null : expiryIn(expires, system.now());
        return (await keys.add({ ...wanted, expiresAt }, { actor: null })).text;
      }),
    list: () => listOn(config, system),
    async revoke(name) {
      assertLogThere(config);
      await change((keys) => keys.revoke(name, null));
    },
  };
}

type LogLocation = Pick<Config, 'dataDir' | 'eventStore'>;

/** Opens the log for some work, and locks its folder meanwhile. @throws {DataDirHeld | LogUnreadable | ConfigInvalid} */
async function onLog<T>(
  { dataDir: folder, eventStore }: LogLocation,
  system: System,
  act: (log: EventLog) => Promise<T>,
): Promise<T> {
  const parts = { eventStore, onBroken: () => undefined, system };
  if (eventStore !== null)
    return await closing(await openLog({ ...parts, file: logIn(folder) }), async (log) => {
      await assertSeen(log, { dataDir: folder, eventStore }, system);
      return await act(log);
    });
  const holder = { pid: process.pid, hostname: hostname(), startedAt: system.now() };
  const { logFile: file, viewsDir, release } = openDataDirectory(folder, holder);
  try {
    const viewsOf = existsSync(join(viewsDir, 'views.sqlite')) ? viewsDir : null;
    return await closing(await openLog({ ...parts, file, viewsOf }), act);
  } finally {
    release();
  }
}

/** Refuses a server's log that lacks what the folder, if there is one, has seen, such as its keys. @throws {LogUnreadable} */
async function assertSeen(log: EventLog, { dataDir: folder, eventStore }: LogLocation, system: System): Promise<void> {
  const path = resolve(folder);
  const instanceId = system.uuid();
  const keys = new KeyStore({ log, system, instanceId, onFault: () => undefined });
  await keys.load();
  const opened = { log, identity: await log.identity(), head: await log.head(), instanceId, keys };
  await checkSeenLog({ eventStore }, { dataDir: { path, ...logFilesIn(path) }, system }, opened);
}

async function closing<T>(log: EventLog, act: (log: EventLog) => Promise<T>): Promise<T> {
  try {
    // Refuses a log that needs a newer version; a read of one stream would not.
    await log.identity();
    return await act(log);
  } finally {
    await log.close();
  }
}

async function listOn(place: LogLocation, system: System): Promise<readonly KeyRecord[]> {
  if (place.eventStore !== null) return await onLog(place, system, (log) => keysOn(log, system));
  const log = openFolderLog(place.dataDir);
  try {
    return await keysOn(log, system);
  } finally {
    log.assertUnchanged();
    log.close();
  }
}

async function keysOn(log: Pick<EventLog, 'readStream'>, { sha256 }: System): Promise<readonly KeyRecord[]> {
  const keys = new KeyRing();
  for await (const event of keyEventReader.read(log, KEYS_STREAM, { sha256 })) keys.take(event);
  return keys.all().map(keyRecord);
}

/** Keeps `revoke` from creating a log in an empty folder. @throws {LogUnreadable} */
function assertLogThere({ dataDir, eventStore }: LogLocation): void {
  const file = logIn(dataDir);
  if (eventStore === null && !existsSync(file)) throw new LogUnreadable({ file, reason: 'there is no such file' });
}

function logIn(folder: string): string {
  return logFilesIn(resolve(folder)).logFile;
}
