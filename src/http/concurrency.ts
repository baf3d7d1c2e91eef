/** Room for some at a time; the others wait their turn. */
import { RequestRefused } from '../api/problems.js';
import type { HttpContext } from './route.js';

/** Most that may wait; the next is refused. */
const MAX_WAITING = 100;

export interface Semaphore {
  /**
   * Resolves once there is room, with how to leave again.
   *
   * @throws {RequestRefused} 503 when too many wait already
   */
  acquire(): Promise<() => void>;
}

/** @param places how many are in it at a time */
export function semaphore(count: number): Semaphore {
  const waiting: (() => void)[] = [];
  let free = count;
  const release = (): void => {
    const next = waiting.shift();
    if (next === undefined) free += 1;
    else next();
  };
  return {
    async acquire() {
      if (free > 0) free -= 1;
      else if (waiting.length >= MAX_WAITING) throw crowded();
      else await new Promise<void>((resolve) => waiting.push(resolve));
      return release;
    },
  };
}

/**
 * A work for which there is room. Its place is free again once it has settled, whoever still waits for it; the deadline
 * of the edge counts for the wait and for the work, each by itself.
 *
 * @throws {RequestRefused} 503 without room in time, or what the edge says of what takes too long
 */
export async function withPermit<T>(
  permits: Semaphore,
  http: Pick<HttpContext, 'inTime'>,
  work: () => Promise<T>,
): Promise<T> {
  const acquired = permits.acquire();
  const release = await http.inTime(acquired, crowded).catch((error: unknown) => {
    acquired.then((late) => late()).catch(() => undefined);
    throw error;
  });
  return await http.inTime(work().finally(release));
}

/** What is said to whom there is no room for, or none in time. */
export function crowded(): RequestRefused {
  const headers = { 'Retry-After': '2' };
  return new RequestRefused('Too many are asking for this at once: try again', { status: 503, headers });
}
