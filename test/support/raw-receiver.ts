/** A receiver of webhooks that a test lets answer in bytes. */
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { createServer } from 'node:net';

export interface RawReceiver {
  readonly url: string;
  /** Open connections. */
  readonly sockets: ReadonlySet<Socket>;
  stop(): Promise<void>;
}

export async function rawReceiver(onConnection: (socket: Socket) => void): Promise<RawReceiver> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket.on('error', () => undefined).on('close', () => sockets.delete(socket)));
    onConnection(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  return {
    url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}/hook`,
    sockets,
    async stop() {
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
