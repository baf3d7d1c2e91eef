/** Waits that a signal can end, work with a deadline, retries, and a small signal for much work at a time. */
import type { System } from '../system.js';

/** Resolves after a time, or at once when the signal aborts. */
export function wait(system: Pick<System, 'after'>, delayMs: number, signal: CancelSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const end = (): void => {
      cancel();
      signal.removeEventListener('abort', end);
      resolve();
    };
    const cancel = system.after(delayMs, end);
    signal.addEventListener('abort', end);
  });
}

/** How long work may take. */
export interface Deadline {
  readonly system: Pick<System, 'after'>;
  readonly maxMs: number;
  /** Ends the work earlier. */
  readonly signal?: CancelSignal;
}

/** The errors of abandoned work. */
export interface Abandoned {
  /** At the deadline. */
  readonly late: () => Error;
  /** By the outer signal. Default: its reason. */
  readonly aborted?: (signal: CancelSignal) => Error;
}

/**
 * The result of work. Settles by the deadline even if the work never does. Rejects before it aborts the work, so that
 * the work's own error about the abort, or a late result, has no effect.
 *
 * @param work receives a controller that aborts at the deadline, or with the outer signal; Node creates its signal when
 *   the work first reads it
 */
export function inTime<T>(
  work: (call: Pick<AbortController, 'signal'>) => Promise<T>,
  { system, maxMs, signal, late, aborted = abortReason }: Deadline & Abandoned,
): Promise<T> {
  if (signal?.aborted === true) return Promise.reject(aborted(signal));
  const call = new AbortController();
  return new Promise<T>((resolve, reject) => {
    const abandon = (error: Error): void => {
      end();
      reject(error);
      call.abort(error);
    };
    const onAbort = (): void => {
      if (signal !== undefined) abandon(aborted(signal));
    };
    const cancel = system.after(maxMs, () => abandon(late()));
    const end = (): void => {
      cancel();
      signal?.removeEventListener('abort', onAbort);
    };
    signal?.addEventListener('abort', onAbort);
    work(call).then(
      (result) => {
        end();
        resolve(result);
      },
      (error: unknown) => {
        end();
        reject(error);
      },
    );
  });
}

/** The result of work that ends by itself when its signal aborts: at the deadline, or with the outer signal. */
export async function untilDeadline<T>(
  work: (signal: AbortSignal) => Promise<T>,
  { system, maxMs, signal }: Deadline & { readonly signal?: AbortSignal },
): Promise<T> {
  const over = new AbortController();
  const cancel = system.after(maxMs, () => over.abort());
  try {
    return await work(signal === undefined ? over.signal : AbortSignal.any([signal, over.signal]));
  } finally {
    cancel();
  }
}

/** The result of a promise. If the signal aborts first, rejects with its reason; the work continues. */
export async function orAborted<T>(
  promise: Promise<T>,
  signal: AbortSignal,
  aborted: (signal: AbortSignal) => Error = abortReason,
): Promise<T> {
  if (signal.aborted) throw aborted(signal);
  let leave = (): void => undefined;
  const left = new Promise<never>((_, reject) => {
    leave = () => reject(aborted(signal));
  });
  signal.addEventListener('abort', leave);
  try {
    return await Promise.race([promise, left]);
  } finally {
    signal.removeEventListener('abort', leave);
  }
}

/** Resolves once the work has settled, or after the time; the work then continues. */
export async function settledWithin(work: Promise<unknown>, { system, maxMs }: Deadline): Promise<void> {
  const settled = new AbortController();
  await Promise.race([work, wait(system, maxMs, settled.signal)]).finally(() => settled.abort());
}

/** The reason of an aborted signal, as an error. */
function abortReason({ reason }: Pick<CancelSignal, 'reason'>): Error {
  return reason instanceof Error ? reason : new Error('The work was aborted', { cause: reason });
}

// Retries with growing waits.

/** Waits between tries, in milliseconds: the first, doubled with every failure up to the longest. */
export interface Backoff {
  readonly firstMs: number;
  readonly longestMs: number;
}

/** The wait after `failures` failures, at least 1. */
export function backoffMs({ firstMs, longestMs }: Backoff, failures: number): number {
  return Math.min(longestMs, firstMs * 2 ** (failures - 1));
}

/** Between two requests to a provider that failed or is busy. */
const PROVIDER_BACKOFF: Backoff = { firstMs: 500, longestMs: 30_000 };
/** Longest Retry-After of a provider that is honoured, in milliseconds. */
const LONGEST_RETRY_AFTER_MS = 60_000;

/** The honoured part of the wait that a provider asked for, in milliseconds, 0 if it asked for none. */
export function honouredMs(retryAfterMs: number | undefined): number {
  return Math.min(LONGEST_RETRY_AFTER_MS, retryAfterMs ?? 0);
}

/**
 * The wait before the next request to a provider: with full jitter, never less than it asked for.
 *
 * @param random in [0, 1): spreads requests that failed together
 */
export function providerWaitMs(failures: number, retryAfterMs: number | undefined, random: number): number {
  return Math.max(backoffMs(PROVIDER_BACKOFF, failures) * random, honouredMs(retryAfterMs));
}

/**
 * The wait that the header `Retry-After` asks for (RFC 9110, section 10.2.3), in milliseconds: seconds, also with decimals, or
 * a date. Null if it is neither.
 */
export function retryAfterMs(text: string, nowMs: number): number | null {
  if (/^\d+(?:\.\d+)?$/.test(text)) return Number(text) * 1_000;
  const atMs = /^[A-Z][a-z]{2,8}, .* GMT$/.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(atMs) ? null : Math.max(0, atMs - nowMs);
}

/** How a call is repeated. */
export interface Retries {
  readonly system: Pick<System, 'after'>;
  /** Ends the retries: the last error is thrown. */
  readonly signal: CancelSignal;
}

/**
 * Calls a function until it succeeds or its error ends the retries.
 *
 * @param waitMs returns the milliseconds until the next try, or null to throw the error
 */
export async function retry<T>(
  act: () => Promise<T>,
  waitMs: (error: unknown, failures: number) => number | null,
  retries: Retries,
): Promise<T> {
  for (let failures = 1; ; failures += 1) {
    try {
      return await act();
    } catch (error) {
      const { system, signal } = retries;
      const delayMs = waitMs(error, failures);
      if (delayMs === null || signal.aborted) throw error;
      await wait(system, delayMs, signal);
    }
  }
}

// Cancels work of which tens of thousands may be under way: an AbortSignal takes 0.8 kB of memory, a cancellation 0.1 kB.

/** The part of an AbortSignal that cancelled work uses. */
export interface CancelSignal {
  readonly aborted: boolean;
  readonly reason: unknown;
  throwIfAborted(): void;
  addEventListener(type: 'abort', listener: () => void): void;
  removeEventListener(type: 'abort', listener: () => void): void;
}

export class Cancellation implements CancelSignal {
  #isAborted = false;
  #reason: unknown;
  #listeners: readonly (() => void)[] = NONE;

  get aborted(): boolean {
    return this.#isAborted;
  }

  get reason(): unknown {
    return this.#reason;
  }

  /** Cancels the work. Only the first call has an effect. Calls the listeners in the order of their addition; they must not throw. */
  abort(reason: Error): void {
    if (this.#isAborted) return;
    this.#isAborted = true;
    this.#reason = reason;
    const listeners = this.#listeners;
    this.#listeners = NONE;
    for (const listener of listeners) listener();
  }

  throwIfAborted(): void {
    if (this.#isAborted) throw this.#reason;
  }

  addEventListener(_: 'abort', listener: () => void): void {
    if (!this.#isAborted) this.#listeners = [...this.#listeners, listener];
  }

  removeEventListener(_: 'abort', listener: () => void): void {
    this.#listeners = this.#listeners.filter((each) => each !== listener);
  }
}

const NONE: readonly (() => void)[] = [];
