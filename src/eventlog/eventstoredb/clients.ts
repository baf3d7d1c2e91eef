/** The vendor's clients of one server or cluster: one at first, more when many calls are open. */
import type { DNSClusterOptions, GossipClusterOptions, SingleNodeOptions } from '@eventstore/db-client';
import { AccessDeniedError, EventStoreDBClient } from '@eventstore/db-client';
import type { System } from '../../system/system.js';
import { settledWithin } from '../../system/async/deadline.js';
import type { Address } from './connection-string.js';

/**
 * Open calls per client, and so per socket. The server serves 100 calls of a socket at a time; the deadlines of more
 * calls pass while they wait.
 */
export const MAX_CALLS = 90;

/** Index of SHUTDOWN among the states of a gRPC channel. */
const SHUTDOWN = 4;

/** The vendor's client, of which three gaps are closed through members that it keeps for subclasses. */
class Client extends EventStoreDBClient {
  constructor({ connection, channel, credentials }: ClientSettings) {
    super(connection, channel, credentials);
    const { handleError, execute } = this;
    // The client does not wait for its own handling of an error, which fails when the next discovery does.
    this.handleError = (client, error) => handleError(client, error).catch(() => undefined);
    // An append that begins on a channel that was closed meanwhile would never settle, and reject where nothing catches.
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
  #made = 0;

  constructor(address: Address) {
    this.#address = address;
  }

  /** What every append is sent with; see Address. */
  get credentials(): Address['credentials'] {
    return this.#address.credentials;
  }

  /** A client that has room for one more call, until `release` is called once. */
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

  /** Gives up a client whose server says nothing: its reads and subscriptions end, the next call connects elsewhere. */
  replace(client: Client): void {
    const at = this.#members.findIndex((member) => member.client === client);
    if (at < 0) return;
    this.#members.splice(at, 1);
    client.close().catch(() => undefined);
  }

  /** An error of a client without the credentials: a server may quote what it refuses. */
  redacted(error: unknown): Error {
    const words = error instanceof Error ? error.message : String(error);
    const code = codeOf(error);
    return Object.assign(new Error(this.redact(words)), code !== null && { code });
  }

  redact(words: string): string {
    return this.#address.secrets.reduce((text, secret) => text.replaceAll(secret, '…'), words);
  }

  /** Ends every call and every socket, as far as that is possible within a time. */
  async close(system: Pick<System, 'after'>, maxMs: number): Promise<void> {
    const closed = Promise.allSettled(this.#members.splice(0).map(({ client }) => client.close()));
    await settledWithin(closed, { system, maxMs });
  }

  #added(): Member {
    const { channel, credentials } = this.#address;
    const connection = connectionOf(this.#address, this.#made);
    const member = { client: new Client({ connection, channel, credentials }), calls: 0 };
    this.#members.push(member);
    this.#made += 1;
    return member;
  }
}

/** Clients of equal options would share a socket, so each has another keep-alive timeout. */
function connectionOf({ hosts, isDiscovered, options }: Address, index: number): SingleNodeOptions {
  const { keepAliveTimeout } = options;
  const own = { ...options, keepAliveTimeout: (keepAliveTimeout < 0 ? NEVER_MS : keepAliveTimeout) + (index % 1_000) };
  const [first = { address: '', port: 0 }] = hosts;
  const connection: SingleNodeOptions | DNSClusterOptions | GossipClusterOptions = isDiscovered
    ? { ...own, discover: first }
    : hosts.length > 1
      ? { ...own, endpoints: [...hosts] }
      : { ...own, endpoint: first };
  // The client takes any of the three, which its overloads do not say of a union.
  return connection as SingleNodeOptions;
}

/** Eleven days: the client takes longer times for none. */
const NEVER_MS = 1_000_000_000;

// What an error of the client means, by its class or its gRPC status code.

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
