/** A timeout for a server that sends nothing while an answer is expected. */
import type { System } from '../../system/system.js';

export interface IdleTimeout {
  /** Aborts with ServerSilent when the timeout expires, or with the reason of the outer signal. */
  readonly signal: AbortSignal;
  /** Stops the clock while an answer is processed. */
  pause(): void;
  /** Restarts the clock: the server is waited for again. */
  resume(): void;
  end(): void;
}

export class ServerSilent extends Error {
  constructor(deadlineMs: number) {
    super(`The server said nothing for ${deadlineMs} ms`);
  }
}

/**
 * Expires after the deadline, counted from now and from each answer; once answers come it may take up to twice as long,
 * because a timer per answer would cost more than reading it.
 *
 * @param outer abort it too; unlike with AbortSignal.any, no listener stays on them after `end`
 */
export function idleTimeout(
  system: Pick<System, 'after'>,
  deadlineMs: number,
  outer: readonly AbortSignal[],
): IdleTimeout {
  const over = new AbortController();
  const leave = (): void => over.abort(outer.find(({ aborted }) => aborted)?.reason);
  for (const signal of outer) signal.addEventListener('abort', leave);
  if (outer.some(({ aborted }) => aborted)) leave();
  let isPaused = false;
  let isFresh = false;
  let cancel = (): void => undefined;
  const set = (): void => {
    cancel = system.after(deadlineMs, () => {
      if (!isPaused && !isFresh) return over.abort(new ServerSilent(deadlineMs));
      isFresh = false;
      set();
    });
  };
  set();
  return {
    signal: over.signal,
    pause() {
      isPaused = true;
    },
    resume() {
      isPaused = false;
      isFresh = true;
    },
    end() {
      cancel();
      for (const signal of outer) signal.removeEventListener('abort', leave);
    },
  };
}
