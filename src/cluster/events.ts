/** The stream of an instance: its heartbeats, of which the log keeps the last. */
import type { RecordedEvent } from '../log/port.js';

export const INSTANCE_BEAT = 'InstanceBeat';

/** Stream of an instance. */
export function instanceStream(instanceId: string): string {
  return `instance-${instanceId}`;
}

/** The instance whose heartbeat an event is; null when it is none. */
export function beatOf({ stream, type }: RecordedEvent): string | null {
  const prefix = instanceStream('');
  return type === INSTANCE_BEAT && stream.startsWith(prefix) ? stream.slice(prefix.length) : null;
}
