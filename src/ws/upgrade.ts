/** WebSocket upgrades: which are accepted, and the pings that find dead connections. */
import type { IncomingMessage, Server } from 'node:http';
import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import type { WebSocket, WebSocketServer } from 'ws';
import type { System } from '../system/system.js';
import type { Limits } from '../api/limits.js';
import { askerOf } from '../api/limits.js';
import type { Authenticator } from '../keys/authenticator.js';
import type { Grant } from '../keys/caller.js';
import type { AuthenticationRules } from '../api/authentication.js';
import { authenticate } from '../api/authentication.js';
import { problemOf } from '../api/problems.js';
import type { SourceRules } from '../api/request-source.js';
import { refusedHost, refusedPage } from '../api/request-source.js';
import type { ChannelOptions } from './channel.js';
import { serveChannel } from './channel.js';
import { CLOSE_LATER, CLOSE_RESTART, CLOSE_UNAUTHORIZED, closeCodeOf } from './messages.js';
import type { RichChannelOptions } from './channel.js';
import { serveRichChannel } from './channel.js';
import type { SendQueueOptions } from './send-queue.js';
import { SendQueue } from './send-queue.js';

/** Time between pings in milliseconds. */
const PING_MS = 20_000;
/** Pings without an answer before a connection counts as dead. */
const MAX_MISSED_PONGS = 2;
/** Largest message taken from a client in bytes; text from clients is ignored. */
const MAX_CLIENT_MESSAGE_BYTES = 4 * 1024;
/** Sockets open at once; more are refused with 503. About 20 KB of memory each. */
const MAX_SOCKETS = 20_000;
/** How long a client may take to complete the closing handshake, in milliseconds. */
const GOODBYE_MS = 2_000;

export interface ChannelServerOptions
  extends Omit<ChannelOptions & RichChannelOptions, 'sendQueue'>, SourceRules, AuthenticationRules {
  readonly authenticator: AuthenticationRules['authenticator'] & Pick<Authenticator, 'watch'>;
  readonly system: Pick<System, 'after' | 'soon' | 'uuid'>;
  readonly limits: Pick<Limits, 'request'>;
  readonly unsent: SendQueueOptions['unsent'];
}

export interface ChannelServer {
  /** Closes every socket with 1012 and refuses further ones. */
  stop(): Promise<void>;
}

/** Serves `/ws/council/{run_id}` on a server's upgrades; every other upgrade is refused with a plain 404. */
export function serveChannels(server: Server, options: ChannelServerOptions): ChannelServer {
  let opened: Promise<WebSocketServer> | null = null;
  const heartbeat = pinging(options);
  const channel = { ...options, sendQueue: new SendQueue(options) };
  let stopped = false;

  const onUpgrade = (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
    const target = targetOf(request, { socket, head }, { server, ...options });
    if (target === null) return;
    admit(request, { socket, head, target }).catch((error: unknown) => refuseFor(error, socket, options));
  };

  const admit = async (request: IncomingMessage, { socket, head, target }: Upgrade): Promise<void> => {
    const sockets = await (opened ??= openSockets());
    const caller = await callerOf(request, options);
    if (caller === null) return closeForLater(sockets, request, { socket, head });
    const refusal = refusedExcess(request, caller, options);
    if (refusal !== null) return refuse(socket, refusal.status, refusal.detail, refusal.headers);
    if (stopped || sockets.clients.size >= MAX_SOCKETS) return refuse(socket, 503, 'No further sockets are taken');
    if (target.stream === 'unclear') return refuse(socket, 422, target.detail);
    sockets.handleUpgrade(request, socket, head, (client) => {
      // ws closes by itself after an error, with the matching code; ending the socket here would come before that.
      client.on('error', () => undefined);
      heartbeat.watch(client);
      const leave = options.authenticator.watch(caller, () => client.close(CLOSE_UNAUTHORIZED, 'the key has ended'));
      client.on('close', leave);
      const peer = { socket: client, connection: socket };
      if (target.stream === 'default') serveChannel(peer, target.runId, channel);
      else serveRichChannel(peer, target, channel);
    });
  };

  server.on('upgrade', onUpgrade);
  return {
    async stop() {
      if (stopped) return;
      stopped = true;
      heartbeat.stop();
      const open = [...((await opened)?.clients ?? [])];
      const gone = open.map((client) => new Promise<void>((resolve) => client.once('close', () => resolve())));
      for (const client of open) client.close(CLOSE_RESTART, 'the service stops');
      const cancel = options.system.after(GOODBYE_MS, () => open.forEach((client) => client.terminate()));
      await Promise.all(gone);
      cancel();
    },
  };
}

export interface DeferredChannelsOptions extends SourceRules, Pick<ChannelServerOptions, 'system' | 'onFault'> {
  readonly server: Server;
}

/** A listener for a server's upgrades while the log is away: closes each socket of a run with 1013. */
export function deferChannels(
  options: DeferredChannelsOptions,
): (request: IncomingMessage, socket: Duplex, head: Buffer) => void {
  let opened: Promise<WebSocketServer> | null = null;
  return (request, socket, head) => {
    if (targetOf(request, { socket, head }, options) === null) return;
    (opened ??= openSockets())
      .then((sockets) => closeForLater(sockets, request, { socket, head }))
      .catch((error: unknown) => refuseFor(error, socket, options));
  };
}

/** Loaded with the first socket: a start need not wait for it. */
async function openSockets(): Promise<WebSocketServer> {
  const { WebSocketServer } = await import('ws');
  const sockets = new WebSocketServer({
    noServer: true,
    maxPayload: MAX_CLIENT_MESSAGE_BYTES,
    perMessageDeflate: false,
  });
  sockets.on('wsClientError', ({ message }, socket) => {
    refuse(socket, 400, message, { 'Sec-WebSocket-Version': '13' });
  });
  return sockets;
}

/** Pings every socket, and ends those that no longer answer. */
function pinging({ system }: Pick<ChannelServerOptions, 'system'>): {
  watch(client: WebSocket): void;
  stop(): void;
} {
  const missed = new Map<WebSocket, number>();
  const ping = ([client, count]: readonly [WebSocket, number]): void => {
    if (count >= MAX_MISSED_PONGS) return client.terminate();
    missed.set(client, count + 1);
    client.ping();
  };
  const beat = (): void => {
    for (const each of missed) ping(each);
    cancel = system.after(PING_MS, beat);
  };
  let cancel = system.after(PING_MS, beat);
  return {
    watch(client) {
      client.on('pong', () => missed.set(client, 0));
      client.on('close', () => missed.delete(client));
      missed.set(client, 0);
    },
    stop: () => cancel(),
  };
}

/** The connection of an upgrade, and the bytes read after the request. */
interface Connection {
  readonly socket: Duplex;
  readonly head: Buffer;
}

/** An upgrade on its way to its channel. */
interface Upgrade extends Connection {
  readonly target: UpgradeTarget;
}

/** The channel that an upgrade is for, or null after refusing the upgrade or serving it as an ordinary request. */
function targetOf(
  request: IncomingMessage,
  { socket, head }: Connection,
  { server, ...rules }: SourceRules & { readonly server: Server },
): UpgradeTarget | null {
  if (!isToSocket(request)) {
    passOver(server, request, { socket, head });
    return null;
  }
  socket.on('error', () => socket.destroy());
  const target = parseTarget(request.url ?? '');
  const refusal =
    target === null
      ? { status: 404, detail: 'No such channel', headers: {} }
      : (refusedMethod(request) ?? refusedSource(request, rules));
  if (refusal === null) return target;
  refuse(socket, refusal.status, refusal.detail, refusal.headers);
  return null;
}

/** The caller of an upgrade, or null if the log, which knows the keys, cannot be reached. */
async function callerOf(request: IncomingMessage, rules: AuthenticationRules): Promise<Grant | null> {
  try {
    return await authenticate(request, { access: 'read', isReading: false, takesTicket: true }, rules);
  } catch (error) {
    if (closeCodeOf(error) === CLOSE_LATER) return null;
    throw error;
  }
}

/** Opens a socket and closes it with 1013: browsers pass that code to the page, but no status of a refused upgrade. */
function closeForLater(sockets: WebSocketServer, request: IncomingMessage, { socket, head }: Connection): void {
  if (sockets.clients.size >= MAX_SOCKETS) return refuse(socket, 503, 'No further sockets are taken');
  sockets.handleUpgrade(request, socket, head, (client) => {
    client.on('error', () => undefined);
    client.close(CLOSE_LATER, 'try again later');
  });
}

function isToSocket({ headers: { upgrade = '' } }: IncomingMessage): boolean {
  return upgrade.split(',').some((each) => each.trim().toLowerCase() === 'websocket');
}

interface UpgradeRefusal {
  readonly status: number;
  readonly detail: string;
  readonly headers?: Readonly<Record<string, string>>;
}

function refusedMethod({ method }: IncomingMessage): UpgradeRefusal | null {
  if (method === 'GET') return null;
  return { status: 405, detail: `Method ${method} is not allowed here: GET is`, headers: { Allow: 'GET' } };
}

/** HTTP/1.1 needs exactly one Host (RFC 9112, section 3.2); Node looks at that for plain requests only. */
function refusedSource(request: IncomingMessage, rules: SourceRules): UpgradeRefusal | null {
  const hosts = request.rawHeaders.filter((name, at) => at % 2 === 0 && name.toLowerCase() === 'host');
  if (hosts.length !== 1) return { status: 400, detail: 'One Host is needed' };
  return refusedHost(request, rules) ?? refusedPage(request, rules);
}

/** A socket counts as one request, when it is opened. */
function refusedExcess(
  request: IncomingMessage,
  caller: Grant,
  { limits, trustedProxies }: Pick<ChannelServerOptions, 'limits' | 'trustedProxies'>,
): UpgradeRefusal | null {
  const { fields, refusal } = limits.request(askerOf(request, caller, { trustedProxies }));
  if (refusal === null) return null;
  return { status: refusal.data.status, detail: refusal.message, headers: { ...fields, ...refusal.data.headers } };
}

/**
 * Serves a request as if it offered no upgrade (RFC 9110, section 7.8): some clients offer HTTP/2 beside whatever they
 * ask. Node no longer reads the connection, so the request is parsed again.
 */
function passOver(
  server: Server,
  { method, url, httpVersion, rawHeaders }: IncomingMessage,
  { socket, head }: Connection,
): void {
  const fields = rawHeaders.flatMap((name, at) => {
    if (at % 2 === 1 || /^(upgrade|http2-settings)$/i.test(name)) return [];
    const value = rawHeaders[at + 1] ?? '';
    return [`${name}: ${/^connection$/i.test(name) ? withoutOffer(value) : value}\r\n`];
  });
  const start = `${method} ${url} HTTP/${httpVersion}\r\n${fields.join('')}\r\n`;
  socket.unshift(Buffer.concat([Buffer.from(start, 'latin1'), head]));
  server.emit('connection', socket);
}

function withoutOffer(connection: string): string {
  const options = connection.split(',').map((each) => each.trim());
  return options.filter((each) => !/^(upgrade|http2-settings)$/i.test(each)).join(', ');
}

/** Refuses as the REST edge would answer. */
function refuseFor(
  error: unknown,
  socket: Duplex,
  { system, onFault }: Pick<ChannelServerOptions, 'system' | 'onFault'>,
): void {
  const { status, body, headers } = problemOf(error, system.uuid());
  if (status === 500) onFault(error);
  refuse(socket, status, body.detail, headers);
}

function refuse(socket: Duplex, status: number, detail: string, headers: Readonly<Record<string, string>> = {}): void {
  const more = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const body = JSON.stringify({ detail });
  // A peer that never ends its side would hold the socket for ever: nothing else watches an upgraded one.
  socket.once('finish', () => socket.destroy());
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\nContent-Type: application/json\r\n` +
      `${more.join('')}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}

// The target of an upgrade.

export type UpgradeTarget =
  | { readonly stream: 'default'; readonly runId: string }
  /** The rich stream's events with a revision above `after`; -1: all. */
  | { readonly stream: 'all'; readonly runId: string; readonly after: number }
  /** The rich stream with an invalid `from`: guessing one would leave a gap or repeat events. */
  | { readonly stream: 'unclear'; readonly detail: string };

/** Null for a target that is no channel. Of the default stream the query is not looked at. */
function parseTarget(url: string): UpgradeTarget | null {
  const [path = '', query = ''] = split(url);
  const found = /^\/ws\/council\/([^/]+)\/?$/.exec(path)?.[1];
  if (found === undefined) return null;
  const runId = decoded(found);
  const parameters = new URLSearchParams(query);
  if (!parameters.getAll('events').includes('all')) return { stream: 'default', runId };
  const after = afterIn(parameters.getAll('from'));
  if (after === null) return { stream: 'unclear', detail: 'from: Input should be one whole number of at least -1' };
  return { stream: 'all', runId, after };
}

/** Path and query of a target, which may be in absolute form. */
function split(url: string): readonly string[] {
  const origin = /^(?:https?|wss?):\/\/[^/?]*/i.exec(url)?.[0] ?? '';
  const mark = url.indexOf('?');
  return mark < 0 ? [url.slice(origin.length)] : [url.slice(origin.length, mark), url.slice(mark + 1)];
}

function afterIn(texts: readonly string[]): number | null {
  if (texts.length === 0) return -1;
  const [text = ''] = texts;
  const after = Number(text);
  return texts.length === 1 && /^(-1|[0-9]+)$/.test(text) && Number.isSafeInteger(after) ? after : null;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
