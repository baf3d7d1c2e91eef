/**
 * Sends messages to sockets. Encodes each message once for all its recipients, writes a batch for one socket together,
 * and disconnects clients that read too slowly.
 */
import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';
import type { ChannelMessage, RichMessage } from '../generated/schemas.js';
import type { System } from '../system/system.js';
import type { Reader, UnsentBytes } from '../system/async/unsent-bytes.js';
import { CLOSE_TOO_SLOW } from './messages.js';

/** Unsent bytes at which the service disconnects a slow reader, which can reconnect and lose nothing. */
const MAX_UNSENT_BYTES = 1024 * 1024;
/** How long a slow reader may take to receive the close frame, in milliseconds. Its unsent bytes stay in memory. */
const FAREWELL_MS = 2_000;

type Message = ChannelMessage | RichMessage;

/** A socket and its connection, which is corked to write several messages at once. */
export interface Peer {
  readonly socket: WebSocket;
  readonly connection: Pick<Duplex, 'cork' | 'uncork'>;
}

export interface SendQueueOptions {
  readonly system: Pick<System, 'after'>;
  readonly unsent: Pick<UnsentBytes, 'update' | 'forget'>;
}

/** The send queue that all sockets of the service share. */
export class SendQueue {
  readonly #system: Pick<System, 'after'>;
  readonly #unsent: SendQueueOptions['unsent'];
  readonly #encoded = new WeakMap<Message, Buffer>();
  /** Readers of the sockets that ever had unsent bytes. */
  readonly #readers = new WeakMap<WebSocket, Reader>();

  constructor({ system, unsent }: SendQueueOptions) {
    this.#system = system;
    this.#unsent = unsent;
  }

  /**
   * Sends messages on a socket if it is open.
   *
   * @param onSent called when the messages have left this process or never will
   * @returns false if the reader is too slow and is being disconnected
   */
  send({ socket, connection }: Peer, messages: readonly Message[], onSent: () => void = () => undefined): boolean {
    if (!isOpen(socket) || messages.length === 0) {
      onSent();
      return true;
    }
    // The write to the socket takes most of the time of a message.
    connection.cork();
    for (const [index, message] of messages.entries()) {
      const isLast = index === messages.length - 1;
      socket.send(this.#bytesOf(message), { binary: false }, isLast ? () => onSent() : undefined);
    }
    connection.uncork();
    if (socket.bufferedAmount > MAX_UNSENT_BYTES) this.#cutOff(socket);
    else if (socket.bufferedAmount > 0 || this.#readers.has(socket)) this.#unsent.update(this.#readerOf(socket));
    return isOpen(socket);
  }

  #bytesOf(message: Message): Buffer {
    let bytes = this.#encoded.get(message);
    if (bytes === undefined) {
      bytes = Buffer.from(JSON.stringify(message));
      this.#encoded.set(message, bytes);
    }
    return bytes;
  }

  #readerOf(socket: WebSocket): Reader {
    const known = this.#readers.get(socket);
    if (known !== undefined) return known;
    const reader = { unsentBytes: () => socket.bufferedAmount, cutOff: () => this.#cutOff(socket) };
    this.#readers.set(socket, reader);
    socket.once('close', () => this.#unsent.forget(reader));
    return reader;
  }

  /** Closes a socket, whose client has `FAREWELL_MS` to receive the rest and the close code. */
  #cutOff(socket: WebSocket): void {
    this.#unsent.forget(this.#readerOf(socket));
    socket.close(CLOSE_TOO_SLOW, 'too slow');
    const cancel = this.#system.after(FAREWELL_MS, () => socket.terminate());
    socket.once('close', cancel);
  }
}

function isOpen({ readyState, OPEN }: WebSocket): boolean {
  return readyState === OPEN;
}
