/**
 * A server with EventStoreDB's protocol over real gRPC. A script sets its faults. It stores events in an embedded log,
 * so that acknowledged events survive a kill.
 */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { createServer } from 'node:net';
import { GossipService } from '@eventstore/db-client/generated/gossip_grpc_pb.js';
import { StreamsService } from '@eventstore/db-client/generated/streams_grpc_pb.js';
import type { sendUnaryData } from '@grpc/grpc-js';
import { Server, ServerCredentials, status } from '@grpc/grpc-js';
import type { ClusterInfo } from '@eventstore/db-client/generated/gossip_pb.js';
import type { Calls, Script } from './event-store-calls.js';
import { serverCalls } from './event-store-calls.js';
import { gossipAnswer, serviceError } from './event-store-messages.js';
import { openServerStorage } from './event-store-storage.js';

export interface FakeEventStore extends Pick<Calls, 'endSubscriptions' | 'subscriptions'> {
  /** Connection string of this node. */
  readonly url: string;
  readonly port: number;
  /** Replaces the script. */
  behave(script: Script): void;
  /** Connections open now. */
  connections(): number;
  /** Number of connections so far. */
  connectionsEver(): number;
  /** Appends an event at any revision, as another program does. */
  append(stream: string, event: { readonly type: string; readonly data: object }): Promise<void>;
  /** Resets every connection. */
  reset(): void;
  /** Resets every connection and accepts no new one, as a killed process does. */
  kill(): Promise<void>;
  /** Accepts connections again at the same port. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts the server on a file of its own, created when missing; port 0 picks a free one. */
export async function fakeEventStore(file: string, atPort = 0): Promise<FakeEventStore> {
  const storage = await openServerStorage(file);
  const sockets = new Set<Socket>();
  let script: Script = {};
  let ever = 0;
  const reset = (): void => sockets.forEach((socket) => socket.resetAndDestroy());
  const calls = serverCalls({ storage, script: () => script, reset });

  // As in 23.10: further calls on a socket wait without an answer.
  const limits = { 'grpc.max_receive_message_length': 4 * 1024 * 1024, 'grpc.max_concurrent_streams': 100 };
  const server = new Server(limits);
  server.addService(StreamsService, {
    read: calls.read,
    batchAppend: calls.batchAppend,
    tombstone: calls.tombstone,
  });
  server.addService(GossipService, {
    read(_call: unknown, answer: sendUnaryData<ClusterInfo>) {
      if (script.gossip?.() === false) return answer(serviceError(status.UNAVAILABLE, 'Server Is Not Ready'));
      const leaderPort = script.leaderPort ?? null;
      const others = leaderPort === null ? [] : [{ port: leaderPort, isLeader: true }];
      answer(null, gossipAnswer([{ port, isLeader: leaderPort === null }, ...others]));
    },
  });
  const injector = server.createConnectionInjector(ServerCredentials.createInsecure());
  const listener = createServer((socket) => {
    ever += 1;
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => sockets.delete(socket));
    injector.injectConnection(socket);
  });
  const port = await listen(atPort);

  async function listen(at: number): Promise<number> {
    listener.listen(at, '127.0.0.1');
    await once(listener, 'listening');
    const address = listener.address();
    return typeof address === 'object' && address !== null ? address.port : 0;
  }

  async function kill(): Promise<void> {
    if (!listener.listening) return;
    const closed = once(listener, 'close');
    listener.close();
    reset();
    await closed;
  }

  return {
    url: `esdb://127.0.0.1:${port}?tls=false`,
    port,
    behave: (next) => (script = next),
    connections: () => sockets.size,
    connectionsEver: () => ever,
    async append(stream, { type, data }) {
      const event = { id: randomUUID(), type, data: JSON.stringify(data), metadata: {} };
      await storage.append({ stream, events: [event], expected: 'any' });
    },
    reset,
    kill,
    async restart() {
      await listen(port);
    },
    async stop() {
      await kill();
      server.forceShutdown();
      await storage.close();
    },
    endSubscriptions: calls.endSubscriptions,
    subscriptions: calls.subscriptions,
  };
}
