/** A server before its context is created: answers health, queues other requests, refuses them while the log is away. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { AnsweringDeps } from '../http/answering.js';
import type { SourceRules } from '../api/access/request-source.js';
import { isHealthPath, healthOnlyApp } from '../http/health-only.js';
import { deferChannels } from '../ws/upgrade.js';

export interface EarlyRequests {
  /** While the log is away, answers queued and later requests with 503 and closes sockets with 1013. */
  setAway(isAway: boolean): void;
  /** Hands the queued and all later requests to the server's other listeners. */
  end(): void;
}

/** Most requests in the queue; further ones are answered 503. One connection may send any number of them in advance. */
const MAX_QUEUED = 1_000;

/** Serves health on a server, and queues other requests until the log has answered or failed for the first time. */
export function queueEarlyRequests(server: Server, deps: AnsweringDeps & SourceRules): EarlyRequests {
  let isAway = false;
  let queue: (() => void)[] = [];
  const app = healthOnlyApp(deps, () => isAway);
  const defer = deferChannels({ ...deps, server, onFault: (error) => deps.onFault(deps.system.uuid(), error) });
  const onRequest = (request: IncomingMessage, response: ServerResponse): void => {
    if (isAway || isHealthPath(request.url ?? '') || queue.length >= MAX_QUEUED) app(request, response);
    else queue.push(() => void server.emit('request', request, response));
  };
  const onUpgrade = (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
    if (isAway) return defer(request, socket, head);
    socket.on('error', () => socket.destroy());
    queue.push(() => void server.emit('upgrade', request, socket, head));
  };
  const release = (): void => {
    const due = queue;
    queue = [];
    for (const each of due) each();
  };
  server.on('request', onRequest).on('upgrade', onUpgrade);
  return {
    setAway(nowAway) {
      isAway = nowAway;
      if (isAway) release();
    },
    end() {
      server.off('request', onRequest).off('upgrade', onUpgrade);
      release();
    },
  };
}
