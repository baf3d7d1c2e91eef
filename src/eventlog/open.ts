/** Opens the event log that the settings name. */
import type { System } from '../system/system.js';
import type { EventStoreSettings } from '../config.js';
import type { EmbeddedLogOptions } from './embedded/log.js';
import { openEmbeddedLog } from './embedded/log.js';
import type { EventLog } from './port.js';

/** Categories of which only the last event of a stream matters: heartbeats, and the open tickets of a key. */
const KEEP_LAST = { instance: 1, tickets: 1 };

/** Without the first, callers would need no key; without the second, a start with an earlier Idempotency-Key would repeat. */
const LASTING = ['keys-all', 'secret-ids'];

/** Categories of all streams of this service. */
const CATEGORIES = [
  ...['run', 'blueprint', 'document', 'webhook', 'delivery'],
  ...['instance', 'keys', 'session', 'ticket', 'tickets', 'secret', 'ledger', 'checkpoints'],
];

export interface OpenLogOptions extends EmbeddedLogOptions {
  /** The server's settings, or null for the embedded log. The other options but `system` are for the embedded log alone. */
  readonly eventStore: EventStoreSettings | null;
  readonly system: Pick<System, 'after' | 'monotonicMs' | 'uuid'>;
}

/**
 * Opens the log. Does not wait for a server: calls fail until the server answers.
 *
 * @throws {DataDirHeld | LogUnreadable | ConfigInvalid}
 */
export async function openLog({ eventStore, system, ...embedded }: OpenLogOptions): Promise<EventLog> {
  if (eventStore === null) return await openEmbeddedLog({ ...embedded, keepLast: Object.keys(KEEP_LAST) });
  // Loaded only when used: the client takes 30 MB of memory.
  const { openEventStoreLog } = await import('./eventstoredb/log.js');
  return openEventStoreLog({ ...eventStore, keepLast: KEEP_LAST, lasting: LASTING, categories: CATEGORIES, system });
}
