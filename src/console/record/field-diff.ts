/** Compares two JSON values field by field. */
import { canonical } from '../../eventsourcing/canonical-json.js';

/** A field whose value differs; `undefined` if that side lacks the field. */
export interface FieldChange {
  /** Names and indexes, outermost first. */
  readonly path: readonly (string | number)[];
  readonly before: unknown;
  readonly after: unknown;
}

/** Largest number of changes. Beyond it, an object or list that differs is one change. */
const MOST_FIELD_CHANGES = 500;

/**
 * The fields that differ between two JSON values, in the order of the new one. Compares the members of objects and of
 * lists whose items have an `id` (the path then holds the id); other lists are one value.
 */
export function fieldDiff(before: unknown, after: unknown): readonly FieldChange[] {
  const changes: FieldChange[] = [];
  const walk = (path: FieldChange['path'], previous: unknown, current: unknown): void => {
    if (isSame(previous, current)) return;
    const parts = changes.length < MOST_FIELD_CHANGES ? partsOf(previous, current) : null;
    if (parts === null) changes.push({ path, before: previous, after: current });
    else for (const { name, ...part } of parts) walk([...path, name], part.before, part.after);
  };
  walk([], before, after);
  return changes;
}

interface ChangedField {
  readonly name: string | number;
  readonly before: unknown;
  readonly after: unknown;
}

function partsOf(before: unknown, after: unknown): readonly ChangedField[] | null {
  const [previous, current] = [namedParts(before), namedParts(after)];
  if (previous === null || current === null || Array.isArray(before) !== Array.isArray(after)) return null;
  const names = [...current.keys(), ...[...previous.keys()].filter((name) => !current.has(name))];
  return names.map((name) => ({ name, before: previous.get(name), after: current.get(name) }));
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
