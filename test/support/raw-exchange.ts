/** Exchanges raw bytes with a server, for requests that no client library sends. */
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { connect } from 'node:net';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

export interface RawReply {
  readonly status: number;
  readonly head: string;
  readonly body: string;
}

/**
 * Writes the complete request before it reads the reply, as simple clients do. Reads until the server closes the
 * connection.
 */
export async function rawExchange(url: string, parts: Iterable<string | Buffer>): Promise<RawReply> {
  const socket = await openSocket(url);
  await pipeline(Readable.from(parts), socket, { end: false });
  return await readReply(socket);
}

/** A connection to the server of a URL. */
export async function openSocket(url: string): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  await once(socket, 'connect');
  return socket;
}

/** The reply until the server closes the connection. Rejects if the connection is reset. */
export async function readReply(socket: Socket): Promise<RawReply> {
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  await once(socket, 'end');
  socket.destroy();
  const [head = '', body = ''] = Buffer.concat(chunks).toString('utf8').split('\r\n\r\n');
  return { status: Number(head.split(' ')[1]), head, body };
}
