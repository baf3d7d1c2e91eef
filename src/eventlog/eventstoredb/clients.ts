/** The vendor's clients of one server or cluster: one, or more while many calls are open. */
import type { DNSClusterOptions, GossipClusterOptions, SingleNodeOptions } from '@eventstore/db-client';
import { EventStoreDBClient, StreamDeletedError } from '@eventstore/db-client';
import type { ReadReq } from '@eventstore/db-client/generated/streams_pb.js';
import { Channel, credentials as channelCredentials } from '@grpc/grpc-js';
import type { System } from '../../system/system.js';
import { reasonOf } from '../../system/untrusted.js';
import { settledWithin } from '../../system/async/deadline.js';
import type { Address } from './connection-string.js';
import { StreamsClient } from './streams-service.js';

/**
 * Open calls per client, and so per socket. The server serves 100 calls of a socket at a time; the deadlines of more
 * calls pass while they wait.
 */
const MAX_CALLS = 90;

/**
 * Bytes that the server may send ahead of the reader on one socket. With HTTP/2's default of 64 KB a subscription gets
 * that much in one turn of a loop that appends keep busy, falls behind, and the server drops it as too slow: measured
 * with 50 concurrent runs, 3 times a second.
 */
const WINDOW_BYTES = 4 * 1024 * 1024;
/** As in the vendor's channel: the server can hold events of 16 MB, written by projections or over TCP. */
const MAX_MESSAGE_BYTES = 17 * 1024 * 1024;

/** A call that takes appends and answers them. */
export type AppendStream = ReturnType<StreamsClient['batchAppend']>;
/** A call whose answers are the result of a read or a subscription. */
export type ReadStream = ReturnType<StreamsClient['read']>;

/**
 * The vendor's client. This adapter uses its search for the leader, its authentication and the generated messages of
 * requests, through members that it has for subclasses, and replaces its private `createChannel`. Each call goes to the
 * leader and has no deadline.
 */
class Client extends EventStoreDBClient {
  constructor({ connection, channel, credentials }: ClientSettings) {
    super(connection, channel, credentials ?? undefined);
    // It is private. Ours adds the window. It cannot clear the endpoint of the last failure; the next one overwrites that.
    Object.assign(this, { createChannel: () => this.#openChannel(connection, channel) });
    const { handleError } = this;
    let handled = Promise.resolve();
    // The client does not await its own error handler, which rejects when the next discovery fails. It calls it for each call
    // that a lost connection ends, at once: the second would forget the channel that was opened after the first, unclosed.
    this.handleError = (client, error) =>
      (handled = handled.then(() => handleError(client, error)).catch(() => undefined));
  }

  openAppends(): Promise<AppendStream> {
    return this.GRPCStreamCreator(StreamsClient, 'append', (client) => client.batchAppend(...this.#arguments()))();
  }

  openRead(request: ReadReq): Promise<ReadStream> {
    return this.GRPCStreamCreator(StreamsClient, 'read', (client) => client.read(request, ...this.#arguments()))();
  }

  /** Deletes a stream for good, at any revision. @param deadlineMs longest wait for the answer */
  async tombstone(serverStream: string, deadlineMs: number): Promise<void> {
    await this.tombstoneStream(serverStream, { requiresLeader: true, deadline: deadlineMs });
  }

  async #openChannel(
    { keepAliveInterval, keepAliveTimeout }: ClientSettings['connection'],
    { insecure = false, rootCertificate, userKeyFile, userCertFile }: Address['channel'],
  ): Promise<Channel> {
    const credentials = insecure
      ? channelCredentials.createInsecure()
      : channelCredentials.createSsl(rootCertificate ?? null, userKeyFile ?? null, userCertFile ?? null);
    return new Channel(await this.resolveUri(), credentials, {
      'grpc.keepalive_time_ms': keepAliveInterval < 0 ? Number.MAX_VALUE : keepAliveInterval,
      'grpc.keepalive_timeout_ms': keepAliveTimeout,
      'grpc.max_receive_message_length': MAX_MESSAGE_BYTES,
      'grpc-node.flow_control_window': WINDOW_BYTES,
    });
  }

  #arguments(): ReturnType<typeof this.callArguments> {
    return this.callArguments({ requiresLeader: true }, { deadline: Infinity });
  }

  /** Ends every call and closes the socket, which `dispose` leaves open. */
  async close(): Promise<void> {
    await this.dispose();
    (await this.getChannel()).close();
  }
}

export type { Client };

interface ClientSettings extends Pick<Address, 'channel' | 'credentials'> {
  readonly connection: Connection;
}

type Connection = SingleNodeOptions & Pick<Address['options'], 'keepAliveInterval' | 'keepAliveTimeout'>;

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

  /** A client with room for one more call. The caller calls `release` once. */
  borrow(): { readonly client: Client; release(): void } {
    const member = this.#members.find(({ calls }) => calls < MAX_CALLS) ?? this.#added();
    member.calls += 1;
    return { client: member.client, release: () => void (member.calls -= 1) };
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
function connectionOf({ hosts, isDiscovered, options }: Address, index: number): Connection {
  const { keepAliveTimeout } = options;
  const own = { ...options, keepAliveTimeout: (keepAliveTimeout < 0 ? NEVER_MS : keepAliveTimeout) + (index % 1_000) };
  const [first = { address: '', port: 0 }] = hosts;
  const connection: SingleNodeOptions | DNSClusterOptions | GossipClusterOptions = isDiscovered
    ? { ...own, discover: first }
    : hosts.length > 1
      ? { ...own, endpoints: [...hosts] }
      : { ...own, endpoint: first };
  // The constructor accepts any of the three, but has no overload for their union.
  return connection as Connection;
}

/** Eleven days: the client ignores longer times. */
const NEVER_MS = 1_000_000_000;

// The meaning of an error of a call, by its gRPC status code.

const PERMISSION_DENIED = 7;
const FAILED_PRECONDITION = 9;
const ABORTED = 10;
const UNAUTHENTICATED = 16;

export function isDenied(error: unknown): boolean {
  const code = codeOf(error);
  return code === PERMISSION_DENIED || code === UNAUTHENTICATED;
}

/** Whether the server has ended a subscription whose consumer is too slow. */
export function isTooSlow(error: unknown): boolean {
  return codeOf(error) === ABORTED;
}

/** Whether the server has refused to delete a stream that was deleted for good before. */
export function isDeletedBefore(error: unknown): boolean {
  return error instanceof StreamDeletedError;
}

/** Whether the server has refused a read of a stream that was deleted for good. */
export function isDeleted(error: unknown): boolean {
  return codeOf(error) === FAILED_PRECONDITION;
}

/** The gRPC status code of an error, or null if it has none. */
function codeOf(error: unknown): number | null {
  return error instanceof Error && 'code' in error && typeof error.code === 'number' ? error.code : null;
}
