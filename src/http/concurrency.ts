/** Bounds on expensive requests: a few run at a time, the others wait in order. */
import type { ServerResponse } from 'node:http';
import type { Caller } from '../keys/caller.js';
import { placesFor } from '../api/access/places.js';
import { RequestRefused } from '../api/problems.js';
import type { Semaphore } from '../system/async/semaphore.js';
import { semaphore } from '../system/async/semaphore.js';
import { whenClosed } from './answer.js';
import type { HttpContext } from './route.js';

/** Most requests that wait for a permit; further ones are refused. */
const MAX_WAITING = 100;

/** Permits for an expensive kind of request: `count` run at a time; past `MAX_WAITING` waiting ones a request gets 503. */
export function permitsFor(count: number): Semaphore {
  return semaphore(count, { maxWaiting: MAX_WAITING, full: tooMany });
}

/**
 * Does work under a permit, which is released once the work has settled, even after its deadline has passed. The deadline
 * of `withinDeadline` applies to the wait and to the work, each separately.
 *
 * @throws {RequestRefused} 503 without a permit in time, or what `withinDeadline` throws for work that takes too long
 */
export async function withPermit<T>(
  permits: Semaphore,
  http: Pick<HttpContext, 'withinDeadline'>,
  work: () => Promise<T>,
): Promise<T> {
  const release = await permitInTime(permits, http);
  return await http.withinDeadline(work().finally(release));
}

/** Takes a permit, which the caller must release. @throws {RequestRefused} 503 without one in time */
export async function permitInTime(permits: Semaphore, http: Pick<HttpContext, 'withinDeadline'>): Promise<() => void> {
  const acquired = permits.acquire();
  return await http.withinDeadline(acquired, tooMany).catch((error: unknown) => {
    // Releases the permit if it comes later.
    acquired.then((late) => late()).catch(() => undefined);
    throw error;
  });
}

/** Takes a permit that is released once the response is closed. @throws {RequestRefused} 503 without one in time */
export async function holdPermit(
  permits: Semaphore,
  http: Pick<HttpContext, 'withinDeadline'>,
  response: ServerResponse,
): Promise<void> {
  whenClosed(response, await permitInTime(permits, http));
}

/** Takes a place for a caller until the response is closed. @throws {RequestRefused} 503 without a place for it */
export type TakePlace = (response: ServerResponse, caller: Pick<Caller, 'actor'>) => void;

/** Places for open streams of one kind: `max` in all, with a share for each key. */
export function streamPlaces(max: number): TakePlace {
  const places = placesFor(max);
  return (response, { actor }) => {
    const free = places.take(actor);
    if (free === null) throw tooMany();
    whenClosed(response, free);
  };
}

/** The refusal of a request that gets no permit, or none in time. */
export function tooMany(): RequestRefused {
  const headers = { 'Retry-After': '2' };
  return new RequestRefused('Too many requests of this kind at once: try again', { status: 503, headers });
}
