/** The vendor's clients of one server or cluster: one, or more while many calls are open. */
import type { DNSClusterOptions, GossipClusterOptions, SingleNodeOptions } from '@eventstore/db-client';
import { AccessDeniedError, EventStoreDBClient } from '@eventstore/db-client';
import type { System } from '../../system/system.js';
import { reasonOf } from '../../system/untrusted.js';
import { settledWithin } from '../../system/async/deadline.js';
import type { Address } from './connection-string.js';

/**
 * Open calls per client, and so per socket. The server serves 100 calls of a socket at a time; the deadlines of more
 * calls pass while they wait.
 */
export const MAX_CALLS = 90;

/** Index of SHUTDOWN among the states of a gRPC channel. */
const SHUTDOWN = 4;

/** The vendor's client with three faults corrected, through members that it has for subclasses. */
class Client extends EventStoreDBClient {
  constructor({ connection, channel, credentials }: ClientSettings) {
    super(connection, channel, credentials);
    const { handleError, execute } = this;
    // The client does not await its own error handler, which rejects when the next discovery fails.
    this.handleError = (client, error) => handleError(client, error).catch(() => undefined);
    // An append on a channel that was closed meanwhile would never settle, and would reject where nothing catches.
    this.execute = (constructor, name, action) =>
      execute(constructor, name, (client) => {
        const state: number = client.getChannel().getConnectivityState(false);
        if (state === SHUTDOWN) throw new Error('The channel was closed');
        return action(client);
      });
  }

  /** Ends every call and closes the socket, which `dispose` leaves open. */
  async close(): Promise<void> {
    await this.dispose();
    (await this.getChannel()).close();
  }
}

export type { Client };

interface ClientSettings extends Pick<Address, 'channel' | 'credentials'> {
  readonly connection: SingleNodeOptions;
}

/** A client in use. */
interface Member {
  readonly client: Client;
  /** Calls that are open. */
  calls: number;
}

export class Clients {
  readonly #address: Address;
  readonly #members: Member[] = [];
  #created = 0;

  constructor(address: Address) {
    this.#address = address;
  }

  /** Credentials for every append; see Address. */
  get credentials(): Address['credentials'] {
    return this.#address.credentials;
  }

  /** A client with room for one more call. The caller calls `release` once. */
  borrow(): { readonly client: Client; release(): void } {
    const member = this.#members.find(({ calls }) => calls < MAX_CALLS) ?? this.#added();
    member.calls += 1;
    return { client: member.client, release: () => void (member.calls -= 1) };
  }

  /** Makes one call on a client that has room for it. */
  async call<T>(make: (client: Client) => Promise<T>): Promise<T> {
    const { client, release } = this.borrow();
    try {
      return await make(client);
    } finally {
      release();
    }
  }

  /** Closes a client whose server is silent: its reads and subscriptions end, and the next call opens another. */
  replace(client: Client): void {
    const at = this.#members.findIndex((member) => member.client === client);
    if (at < 0) return;
    this.#members.splice(at, 1);
    client.close().catch(() => undefined);
  }

  /** An error of a client without the credentials: a server may quote what it refuses. */
  redacted(error: unknown): Error {
    const message = this.redact(reasonOf(error));
    const code = codeOf(error);
    return Object.assign(new Error(message), code !== null && { code });
  }

  redact(text: string): string {
    return this.#address.secrets.reduce((redacted, secret) => redacted.replaceAll(secret, '…'), text);
  }

  /** Ends every call and closes every socket, or returns after `maxMs`. */
  async close(system: Pick<System, 'after'>, maxMs: number): Promise<void> {
    const closed = Promise.allSettled(this.#members.splice(0).map(({ client }) => client.close()));
    await settledWithin(closed, { system, maxMs });
  }

  #added(): Member {
    const { channel, credentials } = this.#address;
    const connection = connectionOf(this.#address, this.#created);
    const member: Member = { client: new Client({ connection, channel, credentials }), calls: 0 };
    this.#members.push(member);
    this.#created += 1;
    return member;
  }
}

/** Clients with equal options would share a socket, so each has its own keep-alive timeout. */
function connectionOf({ hosts, isDiscovered, options }: Address, index: number): SingleNodeOptions {
  const { keepAliveTimeout } = options;
  const own = { ...options, keepAliveTimeout: (keepAliveTimeout < 0 ? NEVER_MS : keepAliveTimeout) + (index % 1_000) };
  const [first = { address: '', port: 0 }] = hosts;
  const connection: SingleNodeOptions | DNSClusterOptions | GossipClusterOptions = isDiscovered
    ? { ...own, discover: first }
    : hosts.length > 1
      ? { ...own, endpoints: [...hosts] }
      : { ...own, endpoint: first };
  // The constructor accepts any of the three, but has no overload for their union.
  return connection as SingleNodeOptions;
}

/** Eleven days: the client ignores longer times. */
const NEVER_MS = 1_000_000_000;

// The meaning of a client's error, by its class or its gRPC status code.

const INVALID_ARGUMENT = 3;
const PERMISSION_DENIED = 7;
const ABORTED = 10;
const UNAUTHENTICATED = 16;

export function isDenied(error: unknown): boolean {
  const code = codeOf(error);
  return error instanceof AccessDeniedError || code === PERMISSION_DENIED || code === UNAUTHENTICATED;
}

export function isInvalid(error: unknown): boolean {
  return codeOf(error) === INVALID_ARGUMENT;
}

/** Whether the server has ended a subscription whose consumer is too slow. */
export function isTooSlow(error: unknown): boolean {
  return codeOf(error) === ABORTED;
}

/** The gRPC status code of an error, or null if it has none. */
function codeOf(error: unknown): number | null {
  return error instanceof Error && 'code' in error && typeof error.code === 'number' ? error.code : null;
}
