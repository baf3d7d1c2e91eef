/** Data of the service that loads while a component shows it. */
import { lockIfUnauthorized } from '../shell/session.js';
import type { Resource } from './loaded.js';
import { useLoaded } from './loaded.js';

export type { Loaded, Resource } from './loaded.js';

/** As {@link useLoaded}; shows the sign-in form if the session has ended. */
export function useResource<T>(key: string, load: (signal: AbortSignal) => Promise<T>): Resource<T> {
  return useLoaded(key, load, lockIfUnauthorized);
}

/** All items of a paged list. */
export async function allOf<T>(items: AsyncIterable<T>): Promise<readonly T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}
