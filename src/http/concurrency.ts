/** Bounds on expensive requests: some run at a time, the others wait in order. */
import { RequestRefused } from '../api/problems.js';
import type { Semaphore } from '../system/async/semaphore.js';
import { semaphore } from '../system/async/semaphore.js';
import type { HttpContext } from './route.js';

/** Most that may wait; the next is refused. */
const MAX_WAITING = 100;

/** Permits for an expensive kind of request: `count` at a time, and a 503 once `MAX_WAITING` wait. */
export function permitsFor(count: number): Semaphore {
  return semaphore(count, { maxWaiting: MAX_WAITING, full: crowded });
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
  const release = await permitInTime(permits, http);
  return await http.inTime(work().finally(release));
}

/** Takes a permit, which the caller must release. @throws {RequestRefused} 503 without one in time */
export async function permitInTime(permits: Semaphore, http: Pick<HttpContext, 'inTime'>): Promise<() => void> {
  const acquired = permits.acquire();
  return await http.inTime(acquired, crowded).catch((error: unknown) => {
    // A permit that comes later is released at once.
    acquired.then((late) => late()).catch(() => undefined);
    throw error;
  });
}

/** The refusal of a request that gets no permit, or none in time. */
export function crowded(): RequestRefused {
  const headers = { 'Retry-After': '2' };
  return new RequestRefused('Too many are asking for this at once: try again', { status: 503, headers });
}
