/** The channel of a run, as a client reads it. */
import { WebSocket } from 'ws';
import type { Ambient } from '../ambient.js';
import type { ChannelMessage } from '../generated/schemas.js';
import type { SchemaShelf } from '../http/schema.js';
import type { Mailbox } from './mailbox.js';
import { mailbox } from './mailbox.js';
import { jsonValue } from './rest.js';

/** Longest that the service may take to accept the socket, in milliseconds. */
const HANDSHAKE_DEADLINE_MS = 10_000;
/** Silence after which nobody is taken to be there any more, in milliseconds: the service pings every 20 s. */
const SILENCE_MS = 60_000;

export interface ChannelOptions {
  readonly schemas: SchemaShelf;
  readonly ambient: Pick<Ambient, 'after'>;
  /** Ends it. */
  readonly signal: AbortSignal;
}

export type Channel = Pick<Mailbox<ChannelMessage>, 'next'> & { close(): void };

/**
 * Opens a run's channel; it ends when the socket closes, for whatever reason, or falls silent. Messages of unknown form
 * are skipped.
 *
 * @param url of the service, without trailing slash
 */
export function openChannel(url: string, runId: string, { schemas, ambient, signal }: ChannelOptions): Channel {
  const isMessage = schemas.validator('channel-messages.json');
  const messages = mailbox<ChannelMessage>();
  const address = `${url.replace(/^http/, 'ws')}/ws/council/${runId}`;
  const socket = new WebSocket(address, { handshakeTimeout: HANDSHAKE_DEADLINE_MS });
  const close = (): void => socket.terminate();
  let disarm = (): void => undefined;
  const arm = (): void => {
    disarm();
    disarm = ambient.after(SILENCE_MS, close);
  };
  socket.on('open', arm);
  socket.on('ping', arm);
  socket.on('message', (data: Buffer) => {
    const message = jsonValue(data.toString('utf8'));
    if (isMessage(message)) messages.put(message);
  });
  // `close` follows every error.
  socket.on('error', () => undefined);
  socket.on('close', () => {
    disarm();
    signal.removeEventListener('abort', close);
    messages.end();
  });
  if (signal.aborted) close();
  else signal.addEventListener('abort', close);
  return { next: () => messages.next(), close };
}
