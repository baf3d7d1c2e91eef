/** A proxy before a service that cuts connections in the middle of an answer. */
import type { AddressInfo, Socket } from 'node:net';
import { connect, createServer } from 'node:net';

export interface CuttingProxy {
  /** URL of the service through the proxy. */
  readonly url: string;
  /** Connections so far, and those of them that were cut. */
  readonly connections: number;
  readonly cuts: number;
  close(): Promise<void>;
}

/**
 * @param bytesFor returns the number of bytes of the answer after which a connection is cut; called once per connection
 */
export async function openCuttingProxy(serviceUrl: string, bytesFor: () => number): Promise<CuttingProxy> {
  const { port, hostname } = new URL(serviceUrl);
  const open = new Set<Socket>();
  let [connections, cuts] = [0, 0];
  const server = createServer((client) => {
    connections += 1;
    let left = bytesFor();
    const service = connect(Number(port), hostname);
    for (const [socket, other] of [
      [client, service],
      [service, client],
    ] as const) {
      open.add(socket);
      socket.on('error', () => undefined).on('close', () => (open.delete(socket), other.destroy()));
    }
    client.pipe(service);
    service.on('data', (chunk: Buffer) => {
      if (left <= 0) return;
      client.write(chunk.subarray(0, left));
      left -= chunk.length;
      if (left > 0) return;
      cuts += 1;
      client.end();
      service.destroy();
    });
    service.on('end', () => client.end());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${address.port}`,
    get connections() {
      return connections;
    },
    get cuts() {
      return cuts;
    },
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      open.forEach((socket) => socket.destroy());
      await closed;
    },
  };
}
