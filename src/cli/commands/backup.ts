/** `council backup --to DIR`: copies the log into a new folder, through a running service or from a stopped one's folder. */
import { existsSync } from 'node:fs';
import { hostname } from 'node:os';
import { resolve } from 'node:path';
import { LOG_ON_SERVER } from '../../app/backups.js';
import { openDataDirectory } from '../../app/data-directory.js';
import { NotFoundError } from '../../client/errors.js';
import { readConfig, readCouncilKey } from '../../config.js';
import { openEmbeddedLog } from '../../eventlog/embedded/log.js';
import { BackupFailed } from '../../eventlog/errors.js';
import { LogUnreadable } from '../../eventlog/port.js';
import type { BackupRecord } from '../../generated/schemas.js';
import { nodeSystem } from '../../system/system.js';
import { wait } from '../../system/async/deadline.js';
import { folderOfLog } from '../records/folder-log.js';
import { AWAY_MS } from '../service-faults.js';
import { countOf } from '../terminal/table.js';
import type { CommandProcess, Output } from './command.js';
import { HELP, execute, serviceUrl } from './command.js';
import { ArgumentInvalid, EXIT, UsageFault } from './exit-codes.js';

const USAGE = `Usage: council backup --to DIR [--url URL]

Copies the log into the new folder DIR, which can be a DATA_DIR. DIR appears once the copy is complete and verified.

  --to DIR   the folder to create, in an existing folder outside of DATA_DIR
  --url URL  the running service, for example http://127.0.0.1:8000, with an admin key in COUNCIL_KEY. DIR is then an
             absolute path on the machine of the service, which goes on with the backup if this command is interrupted
  --help     show this text

Without --url the command copies the log in the DATA_DIR of a stopped service. A log at EVENTSTORE_URL is backed up by the
means of its server.

Exit code: 0 DIR is complete, 1 there is no backup, 2 wrong usage, a refused key or setting, 3 no service there, 5 DATA_DIR
is in use or unreadable, 130 after Ctrl-C.`;

const OPTIONS = { ...HELP, to: { type: 'string' }, url: { type: 'string' } } as const;

/** How often the command asks a service for the progress of its backup, in milliseconds. */
const POLL_MS = 500;
/** Between two lines of progress, in milliseconds. */
const LINE_MS = 5_000;

export function backup(words: readonly string[], here: CommandProcess): Promise<number> {
  return execute(words, here, { usage: USAGE, options: OPTIONS }, async ({ values, positionals }, output) => {
    if (positionals.length > 0) throw new UsageFault('Too many words');
    const { to, url } = values;
    if (to === undefined || to === '') throw new UsageFault('--to is missing: the folder to create');
    const notify = everyFew(output.notify);
    const done =
      url === undefined
        ? await backUpFolder(resolve(to), here, notify)
        : await backUpService(serviceUrl(url), to, { here, notify });
    await output.print(`${done.to}: ${countOf(done.events, 'event')}, complete and verified\n`);
    return EXIT.done;
  });
}

type Progress = Pick<BackupRecord, 'state' | 'events' | 'events_total'>;

/** Shows the first progress of each state, then one every few seconds. */
function everyFew(notify: Output['notify']): (progress: Progress) => void {
  const { monotonicMs } = nodeSystem();
  let shown = { state: '', atMs: 0 };
  return ({ state, events, events_total: total }) => {
    const atMs = monotonicMs();
    if (state === shown.state && atMs - shown.atMs < LINE_MS) return;
    shown = { state, atMs };
    notify(`${state} ${events} of ${countOf(total, 'event')}`);
  };
}

interface Done {
  readonly to: string;
  readonly events: number;
}

async function backUpFolder(to: string, here: CommandProcess, notify: (progress: Progress) => void): Promise<Done> {
  if (readConfig(here.env).eventStore !== null) {
    throw new ArgumentInvalid({ subject: 'council backup', reason: LOG_ON_SERVER });
  }
  const folder = folderOfLog(here.env);
  const dataDir = openDataDirectory(folder, { pid: process.pid, hostname: hostname(), startedAt: nodeSystem().now() });
  try {
    const file = dataDir.logFile;
    if (!existsSync(file)) throw new LogUnreadable({ file, reason: 'there is no such file' });
    const log = await openEmbeddedLog({ file });
    try {
      const { events } = await log.backup(to, {
        signal: here.signal,
        onProgress: ({ state, events: done, of }) => notify({ state, events: done, events_total: of }),
      });
      return { to, events };
    } finally {
      await log.close();
    }
  } finally {
    dataDir.release();
  }
}

interface ServiceDeps {
  readonly here: CommandProcess;
  readonly notify: (progress: Progress) => void;
}

/** @throws {BackupFailed} the backup has failed, or the service was started again meanwhile */
async function backUpService(url: string, to: string, { here, notify }: ServiceDeps): Promise<Done> {
  const { signal, env } = here;
  const system = nodeSystem();
  const { serviceClient } = await import('../service-client.js');
  const client = serviceClient(url, { key: readCouncilKey(env), system, callMs: AWAY_MS });
  const { started_at: startedAt } = await client.startBackup({ to, signal });
  for (;;) {
    const record = await client.backup({ signal }).catch((error: unknown) => {
      if (error instanceof NotFoundError) return null;
      throw error;
    });
    if (record === null || record.started_at !== startedAt || record.to !== to)
      throw new BackupFailed({ to, reason: 'the service has started again, or makes another backup' });
    if (record.state === 'completed') return record;
    if (record.state === 'failed')
      throw new BackupFailed({ to, reason: record.detail ?? 'the service gives no reason' });
    notify(record);
    await wait(system, POLL_MS, signal);
  }
}
