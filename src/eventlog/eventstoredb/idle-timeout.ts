/** How long is waited for a server that says nothing. */
import type { System } from '../../system/system.js';
import { ServerSilent } from './read-call.js';

export interface IdleTimeout {
  /** Aborts with ServerSilent once patience is at its end, or as the signal that was given. */
  readonly signal: AbortSignal;
  /** Stands still while what came is dealt with. */
  pause(): void;
  /** The server is waited for again. */
  resume(): void;
  end(): void;
}

/**
 * Lasts for the deadline, from now and from each answer on; once answers come, up to twice as long, because a timer
 * for each would cost more than reading them does.
 *
 * @param outer ends it too; nothing of it is kept after `end`, as AbortSignal.any would
 */
export function idleTimeout(system: Pick<System, 'after'>, deadlineMs: number, outer?: AbortSignal): IdleTimeout {
  const over = new AbortController();
  const leave = (): void => over.abort(outer?.reason);
  if (outer?.aborted === true) leave();
  outer?.addEventListener('abort', leave);
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
      outer?.removeEventListener('abort', leave);
    },
  };
}
