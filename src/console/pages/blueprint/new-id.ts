/** Ids of new councils. */
import { ConflictError, InvalidError } from '../../../client/errors.js';

/** In URLs of the console, the editor of a new council. */
export const NEW = 'new';

/** How many ids to try before the service makes one. */
const MOST_TRIED = 20;
const MOST_CHARS = 60;

/** Ids from a name, each for the case that the one before is taken: `town-council`, `town-council-2` and so on. */
export function idsFrom(name: string): readonly [string, ...string[]] {
  const words = name
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .toLowerCase()
    .replaceAll('ß', 'ss')
    .replace(/[^a-z0-9]+/g, '-');
  const id = words.replace(/^-/, '').slice(0, MOST_CHARS).replace(/-$/, '');
  const first = id === '' || id === NEW ? `${id}-council`.replace(/^-/, '') : id;
  return [first, ...Array.from({ length: MOST_TRIED - 1 }, (_, at) => `${first}-${at + 2}`)];
}

/** Why a text cannot be the id of a new council, or null. Without a text, the id comes from the name. */
export function newIdFault(id: string): string | null {
  if (id === NEW) return 'Enter another id.';
  return /^[A-Za-z0-9._-]*$/.test(id) ? null : 'Use letters, digits, “-”, “_” and “.”.';
}

/** Whether the service refuses an id because it is taken or reserved. */
export function isIdRefused(error: unknown): boolean {
  if (error instanceof ConflictError) return true;
  return error instanceof InvalidError && error.errors.length > 0 && error.errors.every(({ loc }) => loc[1] === 'id');
}
