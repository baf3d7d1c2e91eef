/** The events of a blueprint's stream. Each carries the whole record, so the last one is the current state. */
import { BlueprintCorrupt } from './errors.js';
import type { Blueprint, BlueprintFacts, BlueprintRecord, RecordedEdge, SavedEdge } from '../generated/schemas.js';
import type { RecordedEvent } from '../eventlog/port.js';
import { rolesOf } from '../council/roles.js';
import { defaultEdgeId } from './record.js';
import { isTooLong } from './record.js';

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

/**
 * A blueprint as recorded: without its roles, which are derived by today's rules, and, if the record would be too long for
 * an append, without default edge ids, which repeat both ends.
 */
export function recordedBlueprint(blueprint: Blueprint): BlueprintRecord {
  const record: BlueprintRecord & Partial<Pick<Blueprint, 'roles'>> = { ...blueprint };
  delete record.roles;
  if (!isTooLong(record)) return record;
  const { edges } = blueprint;
  return { ...record, edges: edges.map((edge) => (edge.id === defaultEdgeId(edge) ? withoutId(edge) : edge)) };
}

/** The blueprint that an event holds. */
export function blueprintOf(record: BlueprintRecord): Blueprint {
  const edges = record.edges.map((edge) => ({ ...edge, id: edge.id ?? defaultEdgeId(edge) }));
  return { ...record, edges, roles: rolesOf(record) };
}

function withoutId(edge: SavedEdge): RecordedEdge {
  const nameless: RecordedEdge = { ...edge };
  delete nameless.id;
  return nameless;
}

/** An event that a record is read from, and its place on the log. */
type Source = Pick<RecordedEvent, 'type' | 'data' | 'stream' | 'revision'>;

/** Whether an event leaves a blueprint behind; undefined for an event of another kind. */
export function isKeptAfter({ type }: Pick<RecordedEvent, 'type'>): boolean | undefined {
  switch (type) {
    case 'BlueprintCreated':
    case 'BlueprintUpdated':
      return true;
    case 'BlueprintDeleted':
      return false;
    default:
      return undefined;
  }
}

/**
 * The blueprint as an event leaves it: its record, null when it is deleted; undefined for an event of another kind.
 *
 * @throws {BlueprintCorrupt} when the event should hold a record and does not
 */
export function blueprintAfter(event: Source): Blueprint | null | undefined {
  const isKept = isKeptAfter(event);
  return isKept === true ? recordIn(event) : isKept === false ? null : undefined;
}

function recordIn({ data, stream, revision }: Source): Blueprint {
  const blueprintId = blueprintIdOf(stream) ?? stream;
  const corrupt = (reason: string, cause?: unknown): BlueprintCorrupt =>
    new BlueprintCorrupt({ blueprintId, seq: revision, reason }, { cause });
  let held: unknown;
  try {
    held = JSON.parse(data);
  } catch (error) {
    throw corrupt('its data is no JSON', error);
  }
  const record = fieldOf(held, 'blueprint');
  if (!isRecord(record)) throw corrupt('it holds no record of a blueprint');
  if (record.id !== blueprintId) throw corrupt(`it holds the record of "${record.id}"`);
  return blueprintOf(record);
}

/** Checks what the list, the compiler and clients rely on. The rest is not validated: only this service writes the stream. */
function isRecord(value: unknown): value is BlueprintRecord {
  const texts = ['id', 'name', 'createdAt', 'updatedAt'].every((field) => typeof fieldOf(value, field) === 'string');
  return (
    texts &&
    Number.isInteger(fieldOf(value, 'version')) &&
    isListOf(fieldOf(value, 'nodes'), isNode) &&
    isListOf(fieldOf(value, 'edges'), isEdge) &&
    isListOf(fieldOf(value, 'warnings'), isObject)
  );
}

function isNode(value: unknown): boolean {
  const texts = ['id', 'label', 'systemPrompt'].every((field) => typeof fieldOf(value, field) === 'string');
  return texts && isObject(fieldOf(value, 'tools'));
}

function isEdge(value: unknown): boolean {
  const condition = fieldOf(value, 'condition');
  const texts = ['source', 'target'].every((field) => typeof fieldOf(value, field) === 'string');
  const id = fieldOf(value, 'id');
  return texts && (id === undefined || typeof id === 'string') && (condition === null || typeof condition === 'string');
}

function isListOf(value: unknown, isItem: (item: unknown) => boolean): boolean {
  return Array.isArray(value) && value.every(isItem);
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

function fieldOf(value: unknown, field: string): unknown {
  return isObject(value) && Object.hasOwn(value, field) ? Reflect.get(value, field) : undefined;
}
