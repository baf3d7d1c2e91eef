/**
 * The way to the server. Of the client package this adapter uses what finds and keeps a connection (connection string,
 * TLS, credentials, discovery of the leader) and the generated stubs. Its own calls are left aside: a batch append keeps
 * its promises in one list for the whole process, whose entries another client's end rejects, and lets rejections and
 * late answers escape as errors nobody can catch; a unary append costs eight times the processor time.
 */
import { EventStoreDBClient } from '@eventstore/db-client';
import { StreamsClient } from '@eventstore/db-client/generated/streams_grpc_pb.js';
import type { CallOptions, ChannelInterface } from '@grpc/grpc-js';
import { connectivityState, Metadata } from '@grpc/grpc-js';
import type { Ambient } from '../../ambient.js';
import { LogClosed, LogUnavailable } from '../../errors.js';
import { connectionString } from './address.js';
import { faultOf } from './faults.js';
import { NEWEST_OF_ALL } from './read-message.js';
import { read } from './wire.js';

type Client = ReturnType<typeof EventStoreDBClient.connectionString>;

/** A ready connection, as far as anyone knows; to be handed back when a call on it fails. */
export interface Route {
  readonly client: Client;
  readonly streams: StreamsClient;
}

export interface ConnectionOptions {
  /** Connection string of the server or cluster. */
  readonly url: string;
  readonly ambient: Pick<Ambient, 'after'>;
  /** How long finding the server and connecting to it may take, in milliseconds. */
  readonly deadlineMs: number;
}

interface Call {
  cancel(): void;
  on(event: 'status' | 'error', listener: () => void): unknown;
}

/** Owns the client and whatever is called through it. */
export class Connection {
  readonly #options: ConnectionOptions;
  readonly #calls = new Set<Call>();
  #client: Client;
  /** What the client gave last; closing it closes its channel. */
  #streams: StreamsClient | null = null;
  #made = 0;
  #isClosed = false;

  /** @throws {Error} when the client refuses the string, for a certificate file that is not there for example */
  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.#client = this.#nextClient();
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /**
   * The way to take now, once it is ready.
   *
   * @throws {LogClosed} after `close` @throws {LogUnavailable} the server cannot be reached at the moment
   */
  async route(): Promise<Route> {
    if (this.#isClosed) throw new LogClosed();
    const client = this.#client;
    const { ambient, deadlineMs } = this.#options;
    let cancel = (): void => undefined;
    const tooLate = new Promise<never>((_, reject) => {
      cancel = ambient.after(deadlineMs, () => {
        reject(new Error(`No connection within ${deadlineMs} ms`));
      });
    });
    try {
      return await Promise.race([this.#readyRoute(client), tooLate]);
    } catch (cause) {
      // Not a client that is still discovering: the next call joins it.
      if (this.#streams !== null) this.replace(client);
      throw this.isClosed ? new LogClosed() : new LogUnavailable({ cause });
    } finally {
      cancel();
    }
  }

  /** Begins a call on a route; it is cancelled when the route goes. Errors that nobody listens for end nowhere. */
  begin<T extends Call>(
    { client, streams }: Route,
    start: (streams: StreamsClient, metadata: Metadata, options: CallOptions) => T,
  ): T {
    if (client !== this.#client) throw new LogUnavailable();
    const [metadata, options] = client['callArguments']({ requiresLeader: true }, { deadline: Infinity });
    const call = start(streams, metadata, options);
    this.#calls.add(call);
    call.on('status', () => this.#calls.delete(call));
    call.on('error', () => undefined);
    return call;
  }

  /** Hears of a call's error: goes to the leader it names, or takes a new connection where the old one is gone. */
  failed({ client, streams }: Route, error: unknown): void {
    const fault = faultOf(error);
    if (client !== this.#client || !(error instanceof Error)) return;
    // The client closes the channel and will connect to the node named.
    if (fault === 'not-leader') client['handleError'](streams, error).catch(() => this.replace(client));
    else if (fault === 'lost') this.replace(client);
  }

  /** Gives up a client, whose connection is silent or gone; its calls end with an error. */
  replace(client: Client): void {
    if (client !== this.#client || this.#isClosed) return;
    this.#end();
    this.#client = this.#nextClient();
  }

  /** Ends every call and the connection. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#end();
    // What is still being discovered for the old client is closed when it comes.
    this.#client = this.#nextClient();
  }

  /** In this order: cancelled calls leave the socket, and a socket without calls closes with its channel. */
  #end(): void {
    const calls = [...this.#calls];
    this.#calls.clear();
    for (const call of calls) call.cancel();
    this.#streams?.close();
    this.#streams = null;
  }

  async #readyRoute(client: Client): Promise<Route> {
    const streams = await client['execute'](StreamsClient, 'streams', (each) => Promise.resolve(each));
    if (client !== this.#client) {
      streams.close();
      throw new Error('Another connection has taken its place');
    }
    this.#streams = streams;
    await whenReady(streams.getChannel()).catch(async () => Promise.reject(await whyNot(streams)));
    return { client, streams };
  }

  #nextClient(): Client {
    this.#made += 1;
    return EventStoreDBClient.connectionString(connectionString(this.#options.url, this.#made));
  }
}

/** Why a channel carries nothing, such as a certificate that is not trusted: told to calls alone. */
function whyNot(streams: StreamsClient): Promise<Error> {
  return new Promise((resolve) => {
    const call = read(streams, NEWEST_OF_ALL, { metadata: new Metadata(), options: {} });
    call.on('error', resolve);
    call.on('data', () => call.cancel());
  });
}

/** Resolves once calls will be carried; rejects when the attempt under way has failed. */
function whenReady(channel: ChannelInterface): Promise<void> {
  return new Promise((resolve, reject) => {
    const look = (): void => {
      const state = channel.getConnectivityState(true);
      if (state === connectivityState.READY) return resolve();
      if (state === connectivityState.TRANSIENT_FAILURE || state === connectivityState.SHUTDOWN)
        return reject(new Error(`No connection: ${connectivityState[state]}`));
      channel.watchConnectivityState(state, Infinity, (error) => (error === undefined ? look() : reject(error)));
    };
    look();
  });
}
