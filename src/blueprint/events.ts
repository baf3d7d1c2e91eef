/** The events of a blueprint's stream. Each holds the complete record, so the last one is the current state. */
import { BlueprintCorrupt } from './errors.js';
import type { Blueprint, BlueprintFacts, BlueprintRecord, RecordedEdge, SavedEdge } from '../generated/schemas.js';
import type { RecordedEvent } from '../eventlog/port.js';
import { whyInvalid } from '../eventsourcing/event-data.js';
import { blueprintEvents } from '../generated/recorded-events.js';
import { rolesOf } from '../council/roles.js';
import { defaultEdgeId, isTooLong } from './record.js';
import { reasonOf } from '../system/untrusted.js';

export type BlueprintFact = {
  [T in keyof BlueprintFacts]: { readonly type: T; readonly data: BlueprintFacts[T] };
}[keyof BlueprintFacts];

/** Stream of a blueprint. */
export function blueprintStream(blueprintId: string): string {
  return `blueprint-${blueprintId}`;
}

/** The blueprint of a stream, or null for a stream of another category. */
export function blueprintIdOf(stream: string): string | null {
  const prefix = blueprintStream('');
  return stream.startsWith(prefix) ? stream.slice(prefix.length) : null;
}

/**
 * A blueprint as recorded: without its roles, which follow from the current rules, and, if the record is too long for an
 * append, without default edge ids, which repeat both ends.
 */
export function recordedBlueprint(blueprint: Blueprint): BlueprintRecord {
  const record: BlueprintRecord & Partial<Pick<Blueprint, 'roles'>> = { ...blueprint };
  delete record.roles;
  if (!isTooLong(record)) return record;
  const { edges } = blueprint;
  return { ...record, edges: edges.map((edge) => (edge.id === defaultEdgeId(edge) ? withoutId(edge) : edge)) };
}

/** The blueprint in an event. */
export function blueprintOf(record: BlueprintRecord): Blueprint {
  const edges = record.edges.map((edge) => ({ ...edge, id: edge.id ?? defaultEdgeId(edge) }));
  return { ...record, edges, roles: rolesOf(record) };
}

function withoutId(edge: SavedEdge): RecordedEdge {
  const nameless: RecordedEdge = { ...edge };
  delete nameless.id;
  return nameless;
}

/** The part of an event that holds a record, and its position. */
type Source = Pick<RecordedEvent, 'type' | 'data' | 'stream' | 'revision'>;

/** Whether the blueprint exists after an event of each type. */
const KEEPS_BLUEPRINT: Readonly<Record<keyof BlueprintFacts, boolean>> = {
  BlueprintCreated: true,
  BlueprintUpdated: true,
  BlueprintDeleted: false,
};

/** Whether the blueprint exists after an event; undefined for an unknown type. */
export function isKeptAfter({ type }: Pick<RecordedEvent, 'type'>): boolean | undefined {
  return isOfBlueprint(type) ? KEEPS_BLUEPRINT[type] : undefined;
}

function isOfBlueprint(type: string): type is keyof BlueprintFacts {
  return Object.hasOwn(KEEPS_BLUEPRINT, type);
}

/**
 * The blueprint after an event, or null if it is deleted; undefined for an unknown type.
 *
 * @throws {BlueprintCorrupt} when the event lacks its record
 */
export function blueprintAfter(event: Source): Blueprint | null | undefined {
  const isKept = isKeptAfter(event);
  return isKept === true ? parseRecord(event) : isKept === false ? null : undefined;
}

function parseRecord({ type, data, stream, revision }: Source): Blueprint {
  const blueprintId = blueprintIdOf(stream) ?? stream;
  try {
    const saved: unknown = JSON.parse(data);
    if (!holdsRecord(saved)) throw new Error(whyInvalid({ type, data: saved }, blueprintEvents) ?? 'it has no record');
    if (saved.blueprint.id !== blueprintId) throw new Error(`it holds the record of "${saved.blueprint.id}"`);
    return blueprintOf(saved.blueprint);
  } catch (cause) {
    const reason = reasonOf(cause);
    throw new BlueprintCorrupt({ blueprintId, seq: revision, reason }, { cause });
  }
}

/** An update has the same data as a creation. */
const holdsRecord = blueprintEvents.BlueprintCreated;
