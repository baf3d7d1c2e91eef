/** Follows a run for a connection, and cancels the run of a foreground request whose clients have gone. */
import type { ServerResponse } from 'node:http';
import { RequestRefused, isFault } from '../api/problems.js';
import { ServiceStopping } from '../errors.js';
import { closedSignal } from '../http/answer.js';
import type { TakePlace } from '../http/concurrency.js';
import type { HttpContext } from '../http/route.js';
import type { Grant } from '../keys/caller.js';
import type { RunEvent } from '../run/events.js';
import type { RunState } from '../run/state.js';
import { isFinished, pauseOf } from '../run/state.js';

export interface FollowDeps {
  readonly http: HttpContext;
  /** Counts a request that follows a run, before it starts one, until its response is closed. @throws {RequestRefused} 503 */
  readonly takePlace: TakePlace;
}

/** How long a client that was cut off may take to come back before its run is cancelled, in milliseconds. */
const RETURN_MS = 1_000;

/** A connection that follows a run. */
export interface Connection {
  readonly runId: string;
  readonly caller: Grant;
  /** Whether the run is cancelled when its last such connection has gone. */
  readonly isForeground: boolean;
}

/** Waits for the end of a run. @throws {ServiceStopping}, or {RequestRefused} if the client has gone */
export async function endOf(deps: FollowDeps, connection: Connection, response: ServerResponse): Promise<RunState> {
  const signal = closedSignal(response, connection.caller, deps.http);
  const run = await follow(deps, connection, { signal, onState: () => undefined });
  if (run !== null) return run;
  // The client has gone, so no client reads this answer.
  throw new RequestRefused('The client has gone', { status: 400 });
}

export interface StateWatcher {
  /** Aborts when the client has gone. */
  readonly signal: AbortSignal;
  /** Called with the run after each event. The promise must not reject. */
  readonly onState: (run: RunState, event: RunEvent) => void | Promise<void>;
}

/**
 * Follows a run from its first event.
 *
 * @returns the ended run, or null if the client has gone before its end
 * @throws {ServiceStopping | RunCorrupt | LogUnavailable}
 */
export async function follow(
  deps: FollowDeps,
  connection: Connection,
  { signal, onState }: StateWatcher,
): Promise<RunState | null> {
  const { runId, isForeground } = connection;
  const last = await deps.http.feed.follow(runId, { from: 'first', onState, signal });
  if (last !== null && isFinished(last)) return last;
  if (!signal.aborted) throw new ServiceStopping();
  if (isForeground && (last === null || pauseOf(last) === null)) cancelUnlessFollowed(deps, connection);
  return null;
}

/** Cancels a run soon unless a client follows it by then. A paused run waits for its human. */
function cancelUnlessFollowed({ http }: FollowDeps, { runId, caller: { actor } }: Connection): void {
  const cancel = async (): Promise<void> => {
    if (http.feed.watchersOf(runId) > 0) return;
    const run = await http.queries.state(runId);
    if (run === null || isFinished(run) || pauseOf(run) !== null) return;
    await http.registry.cancel(runId, actor);
    http.log.info({ runId, actor }, 'run cancelled: the client that waited for it has gone');
  };
  http.system.after(RETURN_MS, () => {
    cancel().catch((error: unknown) => {
      // It has ended meanwhile, or goes on after an outage or a restart.
      if (isFault(error)) http.onFault(http.system.uuid(), error);
    });
  });
}
