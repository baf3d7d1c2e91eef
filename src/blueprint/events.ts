/** The events of a blueprint's stream. Each carries the whole record, so the last one is the truth. */
import type { Blueprint, BlueprintFacts } from '../generated/schemas.js';
import type { RecordedEvent } from '../log/port.js';

export type BlueprintFact = {
  [T in keyof BlueprintFacts]: { readonly type: T; readonly data: BlueprintFacts[T] };
}[keyof BlueprintFacts];

/** Stream of a blueprint. */
export function blueprintStream(blueprintId: string): string {
  return `blueprint-${blueprintId}`;
}

/** The blueprint that a stream belongs to, null when it is a stream of another category. */
export function blueprintIdOf(stream: string): string | null {
  const prefix = blueprintStream('');
  return stream.startsWith(prefix) ? stream.slice(prefix.length) : null;
}

/** The blueprint as an event leaves it: its record, null when it is deleted; undefined for an event of another kind. */
export function blueprintAfter({ type, data }: Pick<RecordedEvent, 'type' | 'data'>): Blueprint | null | undefined {
  switch (type) {
    case 'BlueprintCreated':
    case 'BlueprintUpdated':
      // Only this service writes these streams.
      return (JSON.parse(data) as BlueprintFacts['BlueprintCreated']).blueprint;
    case 'BlueprintDeleted':
      return null;
    default:
      return undefined;
  }
}
