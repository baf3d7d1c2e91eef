/** Bounds on expensive requests: a few run at a time, the others wait in order. */
import type { ServerResponse } from 'node:http';
import type { Caller } from '../keys/caller.js';
import { placesFor } from '../api/access/places.js';
import { RequestRefused } from '../api/problems.js';
import { whenClosed } from './answer.js';
import type { HttpContext } from './route.js';

/** Most requests of a kind that wait for a permit; further ones are refused. */
const MAX_WAITING = 100;

/** Permits for an expensive kind of request. */
export interface Permits {
  /**
   * Resolves once the caller has a permit, with the function that releases it.
   *
   * @throws {RequestRefused} 503 without a place to wait
   */
  acquire(caller: Pick<Caller, 'actor'>): Promise<() => void>;
}

/**
 * `count` requests run at a time and `MAX_WAITING` wait, in the order in which they came. Each key has a share of both, as
 * of other places: so a key finds a permit that others leave free, however many of their requests wait.
 */
export function permitsFor(count: number): Permits {
  const running = placesFor(count);
  const waiting = placesFor(MAX_WAITING);
  // A waiter starts if its key has a permit left, and returns whether it did.
  const waiters = new Set<() => boolean>();
  const start = (actor: string | null): (() => void) | null => {
    const free = running.take(actor);
    if (free === null) return null;
    return () => {
      free();
      for (const startsNow of waiters) if (startsNow()) waiters.delete(startsNow);
    };
  };
  return {
    async acquire({ actor }) {
      const release = start(actor);
      if (release !== null) return release;
      const leave = waiting.take(actor);
      if (leave === null) throw tooMany();
      return await new Promise((resolve) => {
        waiters.add(() => {
          const later = start(actor);
          if (later === null) return false;
          leave();
          resolve(later);
          return true;
        });
      });
    },
  };
}

/** The caller of a request that needs a permit, and the deadline of its wait. */
export interface PermitRequest {
  readonly http: Pick<HttpContext, 'withinDeadline'>;
  readonly caller: Pick<Caller, 'actor'>;
}

/**
 * Does work under a permit, which is released once the work has settled, even after its deadline has passed. The deadline
 * of `withinDeadline` applies to the wait and to the work, each separately.
 *
 * @throws {RequestRefused} 503 without a permit in time, or what `withinDeadline` throws for work that takes too long
 */
export async function withPermit<T>(
  permits: Permits,
  { http, caller }: PermitRequest,
  work: () => Promise<T>,
): Promise<T> {
  const release = await permitInTime(permits, { http, caller });
  return await http.withinDeadline(work().finally(release));
}

/** Takes a permit, which the caller must release. @throws {RequestRefused} 503 without one in time */
export async function permitInTime(permits: Permits, { http, caller }: PermitRequest): Promise<() => void> {
  const acquired = permits.acquire(caller);
  return await http.withinDeadline(acquired, tooMany).catch((error: unknown) => {
    // Releases the permit if it comes later.
    acquired.then((late) => late()).catch(() => undefined);
    throw error;
  });
}

/** Takes a permit that is released once the response is closed. @throws {RequestRefused} 503 without one in time */
export async function holdPermit(permits: Permits, request: PermitRequest, response: ServerResponse): Promise<void> {
  whenClosed(response, await permitInTime(permits, request));
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
