/** The backups of a running service, one at a time. */
import type { BackupRecord } from '../generated/schemas.js';
import { BackupRefused } from '../eventlog/errors.js';
import type { BackupProgress, EventLog } from '../eventlog/port.js';
import { reasonOf } from '../system/untrusted.js';
import type { ContextDeps } from './context-deps.js';

export interface Backups {
  /**
   * Starts a backup. Resolves once its folder is accepted; the backup goes on without its caller.
   *
   * @throws {BackupRefused} another one runs, the folder cannot be used, or a server keeps the log
   */
  start(to: string): Promise<BackupRecord>;
  /** The backup that runs, or else the last one of this process, or null if there was none. */
  last(): BackupRecord | null;
  /** Ends the backup that runs, and removes its copy. */
  stop(): Promise<void>;
}

export function backupsOf(
  log: Pick<EventLog, 'backup'>,
  { system, logger }: Pick<ContextDeps, 'system' | 'logger'>,
): Backups {
  const stopping = new AbortController();
  let last: BackupRecord | null = null;
  let running: Promise<void> | null = null;

  async function start(to: string): Promise<BackupRecord> {
    if (log.backup === undefined) throw new BackupRefused({ to, reason: LOG_ON_SERVER });
    if (running !== null) throw new BackupRefused({ to, reason: 'another backup runs; wait for its end' });
    let record: BackupRecord = {
      to,
      state: 'copying',
      events: 0,
      events_total: 0,
      started_at: system.now(),
      ended_at: null,
      detail: null,
    };
    let isAccepted = false;
    let accept = (): void => undefined;
    const accepted = new Promise<void>((resolve) => (accept = resolve));
    const change = (changes: Partial<BackupRecord>): void => {
      record = { ...record, ...changes };
      if (isAccepted) last = record;
    };
    const onProgress = ({ state, events, of }: BackupProgress): void => {
      isAccepted = true;
      change({ state, events, events_total: of });
      accept();
    };
    const backup = log.backup(to, { signal: stopping.signal, onProgress });
    running = backup
      .then(
        ({ events }) => {
          change({ state: 'completed', events, ended_at: system.now() });
          logger.info({ to, events }, 'backup: completed');
        },
        (error: unknown) => {
          if (!isAccepted) return;
          change({ state: 'failed', ended_at: system.now(), detail: reasonOf(error) });
          logger.error({ to, err: error }, 'backup: failed, there is no copy');
        },
      )
      .finally(() => (running = null));
    // Rejects if the backup is refused.
    await Promise.race([accepted, backup]);
    logger.info({ to, events: record.events_total }, 'backup: started');
    return record;
  }

  return {
    start,
    last: () => last,
    async stop() {
      stopping.abort(new Error('the service has stopped'));
      await running;
    },
  };
}

/** Why there is no backup of a server's log. */
export const LOG_ON_SERVER = 'EVENTSTORE_URL is set: use the backup of the server that keeps the log';
