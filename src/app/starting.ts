/** A server before the log has been read: it answers health, keeps the first requests, refuses them while the log is away. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { AnsweringDeps } from '../http/answering.js';
import type { SourceRules } from '../api/request-source.js';
import { isOfHealth, startingApp } from '../http/starting.js';
import { deferChannels } from '../ws/upgrade.js';

export interface Starting {
  /** Answers what was kept, and all else that comes while the log is away, with 503; sockets are closed with 1013. */
  turn(isAway: boolean): void;
  /** Leaves the server to its other listeners, which are given what was kept. */
  end(): void;
}

/**
 * Serves a server from now on. Nothing but health is answered, so that nothing is open before the keys are known.
 * Requests that come before the log was asked are kept: that takes a moment. Their number is bounded by that of
 * connections.
 */
export function serveStart(server: Server, deps: AnsweringDeps & SourceRules): Starting {
  let isAway = false;
  let kept: (() => void)[] = [];
  const app = startingApp(deps, () => isAway);
  const defer = deferChannels({ ...deps, server, onFault: (error) => deps.onFault(deps.system.uuid(), error) });
  const onRequest = (request: IncomingMessage, response: ServerResponse): void => {
    if (isAway || isOfHealth(request.url ?? '')) app(request, response);
    else kept.push(() => void server.emit('request', request, response));
  };
  const onUpgrade = (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
    if (isAway) return defer(request, socket, head);
    socket.on('error', () => socket.destroy());
    kept.push(() => void server.emit('upgrade', request, socket, head));
  };
  const release = (): void => {
    const due = kept;
    kept = [];
    for (const each of due) each();
  };
  server.on('request', onRequest).on('upgrade', onUpgrade);
  return {
    turn(nowAway) {
      isAway = nowAway;
      if (isAway) release();
    },
    end() {
      server.off('request', onRequest).off('upgrade', onUpgrade);
      release();
    },
  };
}
