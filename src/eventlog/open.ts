/** Opens the record that the settings name. */
import type { System } from '../system/system.js';
import type { EventStoreSettings } from '../config.js';
import type { LogUnavailable } from '../errors.js';
import { openEmbeddedLog } from './embedded/log.js';
import type { EventLog } from './port.js';

/** Heartbeats count only as the last one there is (architecture, section 3). */
const KEEP_LAST = { instance: 1 };

export interface OpenLogOptions {
  /** Null: the embedded log. */
  readonly eventStore: EventStoreSettings | null;
  /** The embedded log's file. */
  readonly file: string;
  /** Folder of views that were folded from the embedded log, so that it must be there; null: it may be missing. */
  readonly viewsOf?: string | null;
  /** Told once when the embedded log can take nothing more in this process; a server may come back. */
  readonly onBroken: (fault: LogUnavailable) => void;
  readonly system: Pick<System, 'after' | 'monotonicMs' | 'uuid'>;
}

/**
 * Opens the log. A server is not waited for: calls fail until it answers.
 *
 * @throws {DataDirHeld | LogUnreadable | ConfigInvalid}
 */
export async function openLog({ eventStore, system, ...embedded }: OpenLogOptions): Promise<EventLog> {
  if (eventStore === null) return await openEmbeddedLog(embedded);
  // Loaded where it is used: its client takes 20 MB.
  const { openEventStoreLog } = await import('./eventstoredb/log.js');
  return openEventStoreLog({ ...eventStore, keepLast: KEEP_LAST, system });
}
