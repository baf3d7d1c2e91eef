/** A saved council as the stored list keeps it. */
import { blueprintAfter, blueprintIdOf } from '../../blueprint/events.js';
import type { Blueprint } from '../../generated/schemas.js';
import type { RecordedEvent } from '../../eventlog/port.js';

/** A blueprint as the list keeps it. */
export interface BlueprintRow {
  readonly id: string;
  /** Null: it is deleted. */
  readonly record: Blueprint | null;
}

/**
 * What an event of a blueprint's stream makes of its row; null when it is no event of a blueprint.
 *
 * @throws {BlueprintCorrupt} the event is corrupt
 */
export function blueprintRowAfter(event: RecordedEvent): BlueprintRow | null {
  const id = blueprintIdOf(event.stream);
  const record = blueprintAfter(event);
  return id === null || record === undefined ? null : { id, record };
}
