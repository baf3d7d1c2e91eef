/** Waits that a signal can end, and work with a deadline. */
import type { System } from '../system.js';
import type { CancelSignal } from './cancellation.js';

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
