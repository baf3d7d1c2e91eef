/** What a shared file holds of a run. */
import type { RunEvent } from '../../client/run-events.js';
import { runEventIn } from '../../client/run-events.js';

/** In the file as JSON, in the element with this id. */
export const SHARED_RUN = 'shared-run';

export interface SharedRun {
  readonly id: string;
  /** When it was shared, ISO 8601. */
  readonly sharedAt: string;
  /** From the first on. */
  readonly events: readonly RunEvent[];
}

/** JSON that cannot end the element it stands in, nor begin one. */
export function inScript(value: unknown): string {
  return JSON.stringify(value).replace(
    /[<\u2028\u2029]/g,
    (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** The run in a file's text. @throws {Error} there is none */
export function sharedRunIn(text: string): SharedRun {
  const value: unknown = JSON.parse(text);
  if (!isShared(value)) throw new Error('This file does not hold a run');
  return { ...value, events: value.events.map((event) => runEventIn(JSON.stringify(event))) };
}

function isShared(value: unknown): value is Omit<SharedRun, 'events'> & { readonly events: readonly unknown[] } {
  return (
    typeof value === 'object' &&
    value !== null &&
    'id' in value &&
    typeof value.id === 'string' &&
    'sharedAt' in value &&
    typeof value.sharedAt === 'string' &&
    'events' in value &&
    Array.isArray(value.events)
  );
}
