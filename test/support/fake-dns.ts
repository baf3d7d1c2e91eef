/** A name server with one set of addresses for every name, which a test can change, like a recreated container. */
import type { RemoteInfo } from 'node:dgram';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';

export interface FakeDns {
  readonly port: number;
  /** Sets the IPv4 addresses of every name. */
  pointTo(...addresses: readonly string[]): void;
  stop(): void;
}

/** Starts one on 127.0.0.1. */
export async function startFakeDns(): Promise<FakeDns> {
  const socket = createSocket('udp4');
  let current: readonly string[] = [];
  socket.on('message', (query: Buffer, { port, address }: RemoteInfo) => {
    socket.send(answerTo(query, current), port, address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return {
    port: socket.address().port,
    pointTo: (...addresses) => void (current = addresses),
    stop: () => socket.close(),
  };
}

/** The answer: the question, and A records that refer to its name (RFC 1035, section 4). */
function answerTo(query: Buffer, addresses: readonly string[]): Buffer {
  const header = Buffer.from(query.subarray(0, 12));
  header.writeUInt16BE(0x8180, 2);
  [1, addresses.length, 0, 0].forEach((count, at) => header.writeUInt16BE(count, 4 + 2 * at));
  // The name's labels, the empty one at the end, type and class.
  const question = query.subarray(12, query.indexOf(0, 12) + 5);
  const records = addresses.map((each) =>
    Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4, ...each.split('.').map(Number)]),
  );
  return Buffer.concat([header, question, ...records]);
}
