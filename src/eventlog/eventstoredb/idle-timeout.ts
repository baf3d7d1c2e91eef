/** A timeout for a server that sends nothing while an answer is expected. */
import type { System } from '../../system/system.js';

export interface IdleTimeout {
  /** Aborts with ServerSilent when the timeout expires, or with the reason of an outer signal. */
  readonly signal: AbortSignal;
  /** Stops the clock while an answer is processed. */
  pause(): void;
  /** Starts the clock again: the next answer is expected. */
  resume(): void;
  end(): void;
}

export class ServerSilent extends Error {
  constructor(deadlineMs: number) {
    super(`The server sent nothing for ${deadlineMs} ms`);
  }
}

/**
 * Expires after the deadline, counted from now and from each answer.
 *
 * @param outer signals that abort it too; unlike AbortSignal.any, it leaves no listener on them after `end`
 */
export function idleTimeout(
  system: Pick<System, 'after'>,
  deadlineMs: number,
  outer: readonly AbortSignal[],
): IdleTimeout {
  const over = new AbortController();
  const onAbort = (): void => over.abort(outer.find(({ aborted }) => aborted)?.reason);
  for (const signal of outer) signal.addEventListener('abort', onAbort);
  if (outer.some(({ aborted }) => aborted)) onAbort();
  const start = (): (() => void) => system.after(deadlineMs, () => over.abort(new ServerSilent(deadlineMs)));
  let cancel = start();
  return {
    signal: over.signal,
    pause: () => cancel(),
    resume() {
      cancel();
      cancel = start();
    },
    end() {
      cancel();
      for (const signal of outer) signal.removeEventListener('abort', onAbort);
    },
  };
}
