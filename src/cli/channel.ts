/** The channel of a run, as a client reads it. */
import { WebSocket } from 'ws';
import type { ChannelMessage } from '../generated/schemas.js';
import type { SchemaShelf } from '../http/schema.js';
import type { Mailbox } from './mailbox.js';
import { mailbox } from './mailbox.js';
import { jsonValue } from './rest.js';

/** Longest that the service may take to accept the socket, in milliseconds. */
const HANDSHAKE_DEADLINE_MS = 10_000;

/** Opens a run's channel; it ends when the socket closes, for whatever reason. Messages of unknown form are skipped. */
export function openChannel(
  url: string,
  runId: string,
  schemas: SchemaShelf,
): Pick<Mailbox<ChannelMessage>, 'next'> & { close(): void } {
  const isMessage = schemas.validator('channel-messages.json');
  const messages = mailbox<ChannelMessage>();
  const address = `${url.replace(/^http/, 'ws')}/ws/council/${runId}`;
  const socket = new WebSocket(address, { handshakeTimeout: HANDSHAKE_DEADLINE_MS });
  socket.on('message', (data: Buffer) => {
    const message = jsonValue(data.toString('utf8'));
    if (isMessage(message)) messages.put(message);
  });
  // `close` follows every error.
  socket.on('error', () => undefined);
  socket.on('close', () => messages.end());
  return { next: () => messages.next(), close: () => socket.terminate() };
}
