/** Opens the event log that the settings name. */
import type { System } from '../system/system.js';
import type { StartThread } from '../system/thread.js';
import type { EventStoreSettings } from '../config.js';
import type { LogCorrupt, LogUnavailable } from './errors.js';
import { openEmbeddedLog } from './embedded/log.js';
import type { EventLog } from './port.js';

/** Only an instance's newest heartbeat matters. */
const KEEP_LAST = { instance: 1 };

export interface OpenLogOptions {
  /** Null: the embedded log. */
  readonly eventStore: EventStoreSettings | null;
  /** The embedded log's file. */
  readonly file: string;
  /** Folder of views that were folded from the embedded log, which therefore must exist; null: it may be missing. */
  readonly viewsOf?: string | null;
  /** Starts the thread of the embedded log. Default: a new one. */
  readonly startThread?: StartThread | undefined;
  /** Called once when the embedded log has failed for this process; never for a server, which may come back. */
  readonly onBroken: (fault: LogUnavailable) => void;
  /** Called once when something in the embedded log's file is found damaged. */
  readonly onCorrupt?: (fault: LogCorrupt) => void;
  /** Called when the embedded log's disk is found full, and when there is room again. */
  readonly onFull?: (isFull: boolean) => void;
  readonly system: Pick<System, 'after' | 'monotonicMs' | 'uuid'>;
}

/**
 * Opens the log. It does not wait for a server: calls fail until that answers.
 *
 * @throws {DataDirHeld | LogUnreadable | ConfigInvalid}
 */
export async function openLog({ eventStore, system, ...embedded }: OpenLogOptions): Promise<EventLog> {
  if (eventStore === null) return await openEmbeddedLog(embedded);
  // Loaded on use alone: its client takes 30 MB of memory.
  const { openEventStoreLog } = await import('./eventstoredb/log.js');
  return openEventStoreLog({ ...eventStore, keepLast: KEEP_LAST, system });
}
