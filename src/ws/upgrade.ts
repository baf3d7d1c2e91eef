/** WebSocket upgrades: admits clients to the channels of runs, and closes every socket when the service stops. */
import type { IncomingMessage, Server } from 'node:http';
import type { Duplex } from 'node:stream';
import type { WebSocket, WebSocketServer } from 'ws';
import { AccessRefused } from '../api/access/access-refused.js';
import type { AuthenticationRules } from '../api/access/authentication.js';
import { authenticate } from '../api/access/authentication.js';
import type { Limits } from '../api/access/limits.js';
import { clientOf } from '../api/access/limits.js';
import { placesFor } from '../api/access/places.js';
import { problemOf } from '../api/problems.js';
import type { Authenticator } from '../keys/authenticator.js';
import type { Grant } from '../keys/caller.js';
import type { RunQueries } from '../projections/run-queries.js';
import type { System } from '../system/system.js';
import type { ChannelOptions } from './channel.js';
import { serveChannel } from './channel.js';
import { CLOSE_LATER, CLOSE_RESTART, CLOSE_UNAUTHORIZED, closeCodeOf } from './messages.js';
import type { RichChannelOptions } from './rich-channel.js';
import { serveRichChannel } from './rich-channel.js';
import type { SendQueueOptions } from './send-queue.js';
import { SendQueue } from './send-queue.js';
import type { Connection, TargetRules, UpgradeRefusal, UpgradeTarget } from './upgrade-request.js';
import { refuse, targetOf } from './upgrade-request.js';

/** Largest message from a client in bytes; the service ignores the text of clients. */
const MAX_CLIENT_MESSAGE_BYTES = 4 * 1024;
/** Fragments of a message from a client; one more closes the socket with 1008. An empty one costs no payload, but memory. */
const MAX_CLIENT_FRAGMENTS = 64;
/** Sockets open at once; one key holds at most half. Further ones get 503. About 20 KB of memory each. */
const MAX_SOCKETS = 20_000;
/** How long a client may take to complete the closing handshake, in milliseconds. */
const CLOSING_MS = 2_000;

const TOO_MANY_SOCKETS: UpgradeRefusal = { status: 503, detail: 'Too many sockets are open' };

export interface ChannelServerOptions
  extends
    Omit<ChannelOptions & RichChannelOptions, 'sendQueue'>,
    TargetRules,
    AuthenticationRules,
    Pick<FailureOptions, 'onAccessRefused'> {
  readonly authenticator: AuthenticationRules['authenticator'] & Pick<Authenticator, 'watch'>;
  readonly system: Pick<System, 'after' | 'uuid'>;
  readonly limits: Pick<Limits, 'request'>;
  readonly queries: RichChannelOptions['queries'] & Pick<RunQueries, 'assertNotErased'>;
  readonly unsent: SendQueueOptions['unsent'];
}

/** Serves `/ws/council/{run_id}` on a server's upgrades; refuses every other upgrade with a plain 404. */
export function serveChannels(server: Server, options: ChannelServerOptions): ChannelServer {
  const channels = new ChannelServer(options);
  server.on('upgrade', (request, socket, head) => {
    const target = targetOf(request, { socket, head }, { server, ...options });
    if (target !== null) channels.admit(request, { socket, head }, target);
  });
  return channels;
}

export interface DeferredChannelsOptions extends TargetRules, FailureOptions {
  readonly server: Server;
}

/** A listener for a server's upgrades while the log is unreachable: closes each socket of a run with 1013. */
export function deferChannels(
  options: DeferredChannelsOptions,
): (request: IncomingMessage, socket: Duplex, head: Buffer) => void {
  let opened: Promise<WebSocketServer> | null = null;
  return (request, socket, head) => {
    if (targetOf(request, { socket, head }, options) === null) return;
    (opened ??= openSockets())
      .then((sockets) => closeForLater(sockets, request, { socket, head }))
      .catch((error: unknown) => refuseAfter(error, { request, socket }, options));
  };
}

/** The sockets of all channels. */
export class ChannelServer {
  readonly #options: ChannelServerOptions;
  readonly #channel: ChannelOptions & RichChannelOptions;
  readonly #heartbeat: Heartbeat;
  readonly #places = placesFor(MAX_SOCKETS);
  #opened: Promise<WebSocketServer> | null = null;
  #sockets: WebSocketServer | null = null;
  #isStopped = false;

  constructor(options: ChannelServerOptions) {
    this.#options = options;
    this.#channel = { ...options, sendQueue: new SendQueue(options) };
    this.#heartbeat = new Heartbeat(options.system);
  }

  /** How many sockets are open. */
  get open(): number {
    return this.#sockets?.clients.size ?? 0;
  }

  /** Opens the channel for a client that may read it, or refuses the upgrade. */
  admit(request: IncomingMessage, connection: Connection, target: UpgradeTarget): void {
    this.#admit(request, connection, target).catch((error: unknown) =>
      refuseAfter(error, { request, socket: connection.socket }, this.#options),
    );
  }

  /** Closes every socket with 1012 and refuses further ones. May be called twice. */
  async stop(): Promise<void> {
    if (this.#isStopped) return;
    this.#isStopped = true;
    this.#heartbeat.stop();
    const open = [...((await this.#opened)?.clients ?? [])];
    const closed = open.map((client) => new Promise<void>((resolve) => client.once('close', () => resolve())));
    for (const client of open) client.close(CLOSE_RESTART, 'the service stops');
    const cancel = this.#options.system.after(CLOSING_MS, () => open.forEach((client) => client.terminate()));
    await Promise.all(closed);
    cancel();
  }

  async #admit(request: IncomingMessage, { socket, head }: Connection, target: UpgradeTarget): Promise<void> {
    const sockets = await (this.#opened ??= openSockets());
    this.#sockets = sockets;
    const caller = await callerOf(request, this.#options);
    if (caller === null) return closeForLater(sockets, request, { socket, head });
    const overLimit = refusedOverLimit(request, caller, this.#options);
    if (overLimit !== null) return refuse(socket, overLimit);
    if (target.stream === 'invalid') return refuse(socket, { status: 422, detail: target.detail });
    await this.#options.queries.assertNotErased(target.runId);
    const freePlace = this.#isStopped ? null : this.#places.take(caller.actor);
    if (freePlace === null) return refuse(socket, TOO_MANY_SOCKETS);
    if (socket.destroyed) freePlace();
    else socket.once('close', freePlace);
    sockets.handleUpgrade(request, socket, head, (client) => {
      this.#watch(client, caller);
      const peer = { socket: client, connection: socket };
      if (target.stream === 'default') serveChannel(peer, target.runId, this.#channel);
      else serveRichChannel(peer, target, this.#channel);
    });
  }

  /** Closes a socket when its client dies or its grant ends. */
  #watch(client: WebSocket, caller: Grant): void {
    // After an error ws closes the socket itself, with the matching code.
    client.on('error', () => undefined);
    this.#heartbeat.watch(client);
    const { authenticator } = this.#options;
    const stopWatching = authenticator.watch(caller, () => client.close(CLOSE_UNAUTHORIZED, 'the key has ended'));
    client.on('close', stopWatching);
  }
}

/** Loads ws with the first socket, so that the start does not wait for it. */
async function openSockets(): Promise<WebSocketServer> {
  const { WebSocketServer } = await import('ws');
  const sockets = new WebSocketServer({
    noServer: true,
    maxPayload: MAX_CLIENT_MESSAGE_BYTES,
    maxFragments: MAX_CLIENT_FRAGMENTS,
    perMessageDeflate: false,
  });
  sockets.on('wsClientError', ({ message }, socket) => {
    refuse(socket, { status: 400, detail: message, headers: { 'Sec-WebSocket-Version': '13' } });
  });
  return sockets;
}

/** The caller of an upgrade, or null if the log is unreachable and so the key is unknown. */
async function callerOf(request: IncomingMessage, rules: AuthenticationRules): Promise<Grant | null> {
  try {
    return await authenticate(request, { access: 'read', isReading: false, takesTicket: true }, rules);
  } catch (error) {
    if (closeCodeOf(error) === CLOSE_LATER) return null;
    throw error;
  }
}

/**
 * Opens a socket and closes it with 1013. A page in a browser can read that code, but not the status of a refused
 * upgrade.
 */
function closeForLater(sockets: WebSocketServer, request: IncomingMessage, { socket, head }: Connection): void {
  if (sockets.clients.size >= MAX_SOCKETS) return refuse(socket, TOO_MANY_SOCKETS);
  sockets.handleUpgrade(request, socket, head, (client) => {
    client.on('error', () => undefined);
    client.close(CLOSE_LATER, 'try again later');
  });
}

/** A socket counts as one request, when it is opened. */
function refusedOverLimit(
  request: IncomingMessage,
  caller: Grant,
  { limits, trustedProxies }: Pick<ChannelServerOptions, 'limits' | 'trustedProxies'>,
): UpgradeRefusal | null {
  const { fields, refusal } = limits.request(clientOf(request, caller, { trustedProxies }));
  if (refusal === null) return null;
  return { status: refusal.data.status, detail: refusal.message, headers: { ...fields, ...refusal.data.headers } };
}

interface FailureOptions {
  readonly system: Pick<System, 'uuid'>;
  readonly onFault: (error: unknown) => void;
  readonly onAccessRefused: (refused: AccessRefused, request: IncomingMessage) => void;
}

/** Refuses an upgrade that failed, as the REST edge would answer it. */
function refuseAfter(
  error: unknown,
  { request, socket }: { readonly request: IncomingMessage; readonly socket: Duplex },
  { system, onFault, onAccessRefused }: FailureOptions,
): void {
  const { status, body, headers } = problemOf(error, system.uuid());
  if (status === 500) onFault(error);
  if (error instanceof AccessRefused) onAccessRefused(error, request);
  refuse(socket, { status, headers, ...body });
}

/** Time between pings in milliseconds. */
const PING_MS = 20_000;
/** Pings without an answer after which a connection counts as dead. */
const MAX_MISSED_PONGS = 2;

/** Pings sockets and terminates those that do not answer. */
export class Heartbeat {
  readonly #system: Pick<System, 'after'>;
  /** Unanswered pings by socket. */
  readonly #missed = new Map<WebSocket, number>();
  #cancel: () => void;

  constructor(system: Pick<System, 'after'>) {
    this.#system = system;
    this.#cancel = system.after(PING_MS, () => this.#beat());
  }

  watch(client: WebSocket): void {
    client.on('pong', () => this.#missed.set(client, 0));
    client.on('close', () => this.#missed.delete(client));
    this.#missed.set(client, 0);
  }

  stop(): void {
    this.#cancel();
  }

  #beat(): void {
    for (const [client, count] of this.#missed) {
      if (count >= MAX_MISSED_PONGS) {
        client.terminate();
      } else {
        this.#missed.set(client, count + 1);
        client.ping();
      }
    }
    this.#cancel = this.#system.after(PING_MS, () => this.#beat());
  }
}
