/** A counting semaphore for expensive requests: some run at a time, the others wait in order. */
import { RequestRefused } from '../api/problems.js';
import type { HttpContext } from './route.js';

/** Most that may wait; the next is refused. */
const MAX_WAITING = 100;

export interface Semaphore {
  /**
   * Resolves once a permit is free, with the function that releases it.
   *
   * @throws {RequestRefused} 503 when too many wait already
   */
  acquire(): Promise<() => void>;
}

/** @param count permits in all */
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
 * Does work under a permit, which is released once the work has settled, even after its deadline has passed. The deadline
 * of `inTime` applies to the wait and to the work, each separately.
 *
 * @throws {RequestRefused} 503 without a permit in time, or what `inTime` throws for work that takes too long
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

/** The refusal of a request that gets no permit, or none in time. */
export function crowded(): RequestRefused {
  const headers = { 'Retry-After': '2' };
  return new RequestRefused('Too many are asking for this at once: try again', { status: 503, headers });
}
