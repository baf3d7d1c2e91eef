import { blueprintAfter, blueprintIdOf } from '../../blueprint/events.js';
import type { Blueprint } from '../../generated/schemas.js';
import type { RecordedEvent } from '../../eventlog/port.js';

/** A blueprint as the list keeps it. */
export interface BlueprintRow {
  readonly id: string;
  /** The record, or null if the blueprint is deleted. */
  readonly record: Blueprint | null;
}

/**
 * The row of a blueprint after one of its events, or null for any other event.
 *
 * @throws {BlueprintCorrupt} the event is corrupt
 */
export function blueprintRowAfter(event: RecordedEvent): BlueprintRow | null {
  const id = blueprintIdOf(event.stream);
  const record = blueprintAfter(event);
  return id === null || record === undefined ? null : { id, record };
}
