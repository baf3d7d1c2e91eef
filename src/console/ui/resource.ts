/** Something that is asked of the service for as long as a component shows it. */
import { onRefused } from '../shell/session.js';
import type { Resource } from './loaded.js';
import { useLoaded } from './loaded.js';

export type { Loaded, Resource } from './loaded.js';

/** As {@link useLoaded}; a session that has ended is found out. */
export function useResource<T>(key: string, load: (signal: AbortSignal) => Promise<T>): Resource<T> {
  return useLoaded(key, load, onRefused);
}

/** All of a list, which the client reads page by page. */
export async function allOf<T>(items: AsyncIterable<T>): Promise<readonly T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}
