/** What changed between two states, field by field. */
import { canonical } from '../../eventsourcing/canonical-json.js';

/** A field whose value differs; undefined: that side has no such field. */
export interface FieldChange {
  /** Path of names and places, from the outside in. */
  readonly path: readonly (string | number)[];
  readonly before: unknown;
  readonly after: unknown;
}

/** Most fields compared one by one. Beyond that, the diff shows the object or list that holds them as one change. */
const MOST_FIELD_CHANGES = 500;

/**
 * The fields that differ between two JSON values, in the order of the new one. Objects are looked into, lists of objects
 * with an `id` too (their path names the id); other lists are one value.
 */
export function fieldDiff(before: unknown, after: unknown): readonly FieldChange[] {
  const changes: FieldChange[] = [];
  const walk = (path: FieldChange['path'], old: unknown, young: unknown): void => {
    if (isSame(old, young)) return;
    const parts = changes.length < MOST_FIELD_CHANGES ? partsOf(old, young) : null;
    if (parts === null) changes.push({ path, before: old, after: young });
    else for (const { name, ...part } of parts) walk([...path, name], part.before, part.after);
  };
  walk([], before, after);
  return changes;
}

interface Part {
  readonly name: string | number;
  readonly before: unknown;
  readonly after: unknown;
}

function partsOf(before: unknown, after: unknown): readonly Part[] | null {
  const [old, young] = [namedParts(before), namedParts(after)];
  if (old === null || young === null || Array.isArray(before) !== Array.isArray(after)) return null;
  const names = [...young.keys(), ...[...old.keys()].filter((name) => !young.has(name))];
  return names.map((name) => ({ name, before: old.get(name), after: young.get(name) }));
}

/** The parts of an object by name or of a list by item id, or null if the value has no such parts. */
function namedParts(value: unknown): ReadonlyMap<string, unknown> | null {
  if (typeof value !== 'object' || value === null) return null;
  if (!Array.isArray(value)) return new Map(Object.entries(value));
  const items: readonly unknown[] = value;
  const ids = items.map(idOf);
  const isNamed = ids.every((id) => id !== null) && new Set(ids).size === ids.length;
  return isNamed ? new Map(items.map((item, at) => [ids[at] ?? '', item])) : null;
}

function idOf(item: unknown): string | null {
  return typeof item === 'object' && item !== null && 'id' in item && typeof item.id === 'string' ? item.id : null;
}

function isSame(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (a === undefined || b === undefined) return false;
  return canonical(a) === canonical(b);
}
