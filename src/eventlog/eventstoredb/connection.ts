/**
 * The connection to the server: finds the leading node, keeps a channel to it, and begins every call on it; on another
 * beside it when it has all the calls that a server takes. A connection that is lost or hangs is given up with its calls;
 * the next call opens another.
 */
import type { CallOptions, ChannelInterface } from '@grpc/grpc-js';
import { Client, Metadata, connectivityState, status } from '@grpc/grpc-js';
import type { System } from '../../system/system.js';
import { LogClosed, LogUnavailable } from '../errors.js';
import { inTime, wait } from '../../system/async/deadline.js';
import type { Address } from './connection-string.js';
import { addressIn } from './connection-string.js';
import { NEWEST_OF_ALL } from './read-message.js';
import type { Gossip } from './wire.js';
import { LEADER, gossip, read } from './wire.js';

/** A connection that was ready when it was handed out; pass it to `failed` when a call on it fails. */
export interface Route {
  readonly node: string;
  readonly lanes: Lane[];
}

/** A channel, which has a socket of its own. */
interface Lane {
  readonly streams: Client;
  /** Calls under way. */
  calls: number;
}

/** Calls at a time on one channel. A server takes 100 on a socket and leaves any other without an answer. */
const MAX_CALLS = 90;

export interface ConnectionOptions {
  /** Connection string of the server or cluster. */
  readonly url: string;
  readonly system: Pick<System, 'after'>;
  /** How long finding the server and connecting to it may take, in milliseconds. */
  readonly deadlineMs: number;
}

interface Call {
  cancel(): void;
  on(event: 'status' | 'error', listener: (told: unknown) => void): unknown;
}

/** One connection, from finding its node to its end. */
interface Attempt {
  readonly ready: Promise<Route>;
  /** Null: its node is not found yet. */
  route: Route | null;
  readonly over: AbortController;
}

/** Owns the channel and the calls on it. */
export class Connection {
  readonly #options: ConnectionOptions;
  readonly #address: Address;
  readonly #calls = new Set<Call>();
  #attempt: Attempt | null = null;
  /** The leader that a follower has named: the next connection goes there. */
  #leader: string | null = null;
  #made = 0;
  #isClosed = false;

  /** @throws {Error} the string cannot be used, for example because a certificate file is missing */
  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.#address = addressIn(options.url);
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /**
   * The current connection, once it is ready.
   *
   * @throws {LogClosed} after `close` @throws {LogUnavailable} the server cannot be reached at the moment
   */
  async route(): Promise<Route> {
    if (this.#isClosed) throw new LogClosed();
    const attempt = (this.#attempt ??= this.#begun());
    const { system, deadlineMs } = this.#options;
    const late = (): Error => new Error(`No connection within ${deadlineMs} ms`);
    try {
      return await inTime(() => attempt.ready, { system, maxMs: deadlineMs, late });
    } catch (cause) {
      // An attempt that is still finding its node is kept: the next call joins it.
      if (attempt.route !== null) this.#giveUp(attempt);
      throw this.isClosed ? new LogClosed() : new LogUnavailable({ cause });
    }
  }

  /** Begins a call on a route; it is cancelled when the route is given up. Its errors never become unhandled. */
  begin<T extends Call>(route: Route, start: (streams: Client, metadata: Metadata, options: CallOptions) => T): T {
    if (route !== this.#attempt?.route) throw new LogUnavailable();
    const metadata = new Metadata();
    for (const [name, value] of Object.entries(this.#address.headers)) metadata.set(name, value);
    const lane = route.lanes.find(({ calls }) => calls < MAX_CALLS) ?? this.#laneBeside(route);
    const call = start(lane.streams, metadata, {});
    lane.calls += 1;
    this.#calls.add(call);
    call.on('status', () => {
      lane.calls -= 1;
      this.#calls.delete(call);
    });
    // First of its listeners: none is told what must not be shown.
    call.on('error', (error) => this.#hideIn(error));
    return call;
  }

  /** A server's words without the credentials: it may quote what it refuses. */
  quoted(words: string): string {
    return this.#address.secrets.reduce((text, secret) => text.replaceAll(secret, '…'), words);
  }

  #hideIn(error: unknown): void {
    if (!(error instanceof Error)) return;
    error.message = this.quoted(error.message);
    error.stack = this.quoted(error.stack ?? '');
    if ('details' in error && typeof error.details === 'string') error.details = this.quoted(error.details);
  }

  /** Takes a call's error: gives up a lost connection, and connects next to the leader that the error may name. */
  failed(route: Route, error: unknown): void {
    const fault = faultOf(error);
    if (route !== this.#attempt?.route || (fault !== 'not-leader' && fault !== 'lost')) return;
    this.#leader = leaderNamedIn(error);
    this.replace(route);
  }

  /** Gives up a silent or lost connection; its calls end with an error. */
  replace(route: Route): void {
    if (this.#attempt !== null && route === this.#attempt.route) this.#giveUp(this.#attempt);
  }

  /** Ends every call and the connection. */
  close(): void {
    this.#isClosed = true;
    if (this.#attempt !== null) this.#giveUp(this.#attempt);
  }

  #begun(): Attempt {
    const over = new AbortController();
    const attempt: Attempt = { over, route: null, ready: Promise.resolve().then(() => this.#connected(attempt)) };
    attempt.ready.catch(() => this.#giveUp(attempt));
    this.#made += 1;
    return attempt;
  }

  async #connected(attempt: Attempt): Promise<Route> {
    const { security, channelOptions } = this.#address;
    const node = await this.#node(attempt.over.signal);
    attempt.over.signal.throwIfAborted();
    const streams = new Client(node, security, channelOptions);
    attempt.route = { node, lanes: [{ streams, calls: 0 }] };
    await whenReady(streams.getChannel()).catch(async () => Promise.reject(await whyNot(streams)));
    return attempt.route;
  }

  #laneBeside({ node, lanes }: Route): Lane {
    const { security, channelOptions } = this.#address;
    // Else it would share the socket of the first.
    const ownSocket = { ...channelOptions, 'grpc.use_local_subchannel_pool': 1 };
    const lane = { streams: new Client(node, security, ownSocket), calls: 0 };
    lanes.push(lane);
    return lane;
  }

  async #node(signal: AbortSignal): Promise<string> {
    const [leader, [host = '']] = [this.#leader, this.#address.hosts];
    this.#leader = null;
    if (leader !== null) return leader;
    if (!this.#address.isCluster) return host;
    return await leaderOf(this.#address, { system: this.#options.system, first: this.#made, signal });
  }

  /** Cancels the calls first: a socket closes with its channel only when no calls are left on it. */
  #giveUp(attempt: Attempt): void {
    if (attempt !== this.#attempt) return;
    this.#attempt = null;
    attempt.over.abort();
    const calls = [...this.#calls];
    this.#calls.clear();
    for (const call of calls) call.cancel();
    for (const { streams } of attempt.route?.lanes ?? []) streams.close();
  }
}

/** Why a channel does not connect, such as an untrusted certificate: only a call's error says so. */
function whyNot(streams: Client): Promise<Error> {
  return new Promise((resolve) => {
    const call = read(streams, NEWEST_OF_ALL, { metadata: new Metadata(), options: {} });
    call.on('error', resolve);
    call.on('data', () => call.cancel());
  });
}

/** Resolves once the channel is ready; rejects when the current attempt to connect has failed. */
function whenReady(channel: ChannelInterface): Promise<void> {
  return new Promise((resolve, reject) => {
    const look = (): void => {
      const state = channel.getConnectivityState(false);
      if (state === connectivityState.READY) return resolve();
      // Asked to connect, a channel that was closed meanwhile would open a socket that nobody closes.
      if (state === connectivityState.IDLE) channel.getConnectivityState(true);
      if (state === connectivityState.TRANSIENT_FAILURE || state === connectivityState.SHUTDOWN)
        return reject(new Error(`No connection: ${connectivityState[state]}`));
      channel.watchConnectivityState(state, Infinity, (error) => (error === undefined ? look() : reject(error)));
    };
    look();
  });
}

// Finds the leading node of a cluster by asking its nodes (gossip).

export interface DiscoveryOptions {
  readonly system: Pick<System, 'after'>;
  /** Index of the host to ask first: another one each time, so that one wrong host cannot mislead for ever. */
  readonly first: number;
  readonly signal: AbortSignal;
}

/**
 * `host:port` of the leader, from the first host that knows it.
 *
 * @throws {Error} no host has named a leader in any round, or the signal aborted
 */
async function leaderOf(address: Address, { system, first, signal }: DiscoveryOptions): Promise<string> {
  const { hosts, discovery } = address;
  let cause: unknown = null;
  for (let attempt = 0; attempt < discovery.maxAttempts; attempt += 1) {
    for (const index of hosts.keys()) {
      signal.throwIfAborted();
      const host = hosts[(first + index) % hosts.length];
      if (host === undefined) continue;
      try {
        const leader = leaderIn(await gossipOf(host, address, { system, signal }));
        if (leader !== null) return leader;
      } catch (error) {
        cause = error;
      }
    }
    await wait(system, discovery.intervalMs, signal);
  }
  throw new Error(`No host names a leader, asked ${discovery.maxAttempts} times`, { cause });
}

function leaderIn({ members }: Gossip): string | null {
  const leader = members.find(({ state, isAlive }) => isAlive && state === LEADER)?.endPoint ?? null;
  return leader === null ? null : `${leader.host}:${leader.port}`;
}

/** Asks a node for its view of the cluster, over a connection of its own. */
function gossipOf(
  host: string,
  { security, channelOptions, discovery }: Address,
  { system, signal }: Pick<DiscoveryOptions, 'system' | 'signal'>,
): Promise<Gossip> {
  const node = new Client(host, security, channelOptions);
  return new Promise((resolve, reject) => {
    const call = gossip(node, (error, answer) => {
      cancelTimer();
      signal.removeEventListener('abort', leave);
      node.close();
      if (answer === undefined) reject(error ?? new Error('The answer is empty'));
      else resolve(answer);
    });
    const leave = (): void => call.cancel();
    const cancelTimer = system.after(discovery.timeoutMs, leave);
    signal.addEventListener('abort', leave);
  });
}

// Classifies the server's errors.

/**
 * `not-leader`: ask the node it names. `lost`: the connection is gone or unusable. `missing` and `deleted` concern the
 * stream that was read, `denied` the credentials. `too-slow`: the server dropped a subscriber that did not keep up.
 */
export type Fault = 'not-leader' | 'lost' | 'missing' | 'deleted' | 'denied' | 'too-slow' | 'other';

const BY_CODE: Readonly<Record<number, Fault>> = {
  [status.CANCELLED]: 'lost',
  [status.INTERNAL]: 'lost',
  [status.UNAVAILABLE]: 'lost',
  [status.ABORTED]: 'too-slow',
  [status.PERMISSION_DENIED]: 'denied',
  [status.UNAUTHENTICATED]: 'denied',
};

/** The server names its own errors in a trailer, which is more precise than the code. */
const BY_NAME: Readonly<Record<string, Fault>> = {
  'not-leader': 'not-leader',
  'stream-not-found': 'missing',
  'stream-deleted': 'deleted',
  'access-denied': 'denied',
};

/** The meaning of a gRPC error; any other error is `other`. */
export function faultOf(error: unknown): Fault {
  if (!(error instanceof Error)) return 'other';
  const code = 'code' in error && typeof error.code === 'number' ? error.code : null;
  if (code === null) return 'other';
  return BY_NAME[trailerOf(error, 'exception')] ?? BY_CODE[code] ?? 'other';
}

/** `host:port` of the leader, if the error of a follower names it; else null. */
function leaderNamedIn(error: unknown): string | null {
  const [host, port] = [trailerOf(error, 'leader-endpoint-host'), trailerOf(error, 'leader-endpoint-port')];
  return host === '' || port === '' ? null : `${host}:${port}`;
}

function trailerOf(error: unknown, name: string): string {
  if (!(error instanceof Error && 'metadata' in error && error.metadata instanceof Metadata)) return '';
  return String(error.metadata.get(name)[0] ?? '');
}
