/**
 * Sends messages: each is encoded once for all its recipients, a batch for one socket is one write, and a socket whose
 * client is too slow is cut off.
 */
import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';
import type { ChannelMessage, RichMessage } from '../generated/schemas.js';
import type { System } from '../system/system.js';
import type { Reader, UnsentBytes } from '../system/async/unsent-bytes.js';
import { CLOSE_TOO_SLOW } from './messages.js';

/** Unsent bytes at which a slow reader is cut off. It can connect again and lose nothing. */
const MAX_UNSENT_BYTES = 1024 * 1024;
/** How long a reader that is cut off may take to receive the close frame, in milliseconds; its unsent bytes are held. */
const FAREWELL_MS = 2_000;

/** Connections terminated per turn: each takes some 0.2 ms, most of it afterwards, when its unsent writes fail. */
const ENDED_IN_A_TURN = 16;

type Message = ChannelMessage | RichMessage;

/** A socket, and the connection below it, which is corked to write messages together. */
export interface Peer {
  readonly socket: WebSocket;
  readonly connection: Pick<Duplex, 'cork' | 'uncork'>;
}

export interface SendQueueOptions {
  readonly system: Pick<System, 'after' | 'soon'>;
  readonly unsent: Pick<UnsentBytes, 'grew' | 'forget'>;
}

/** The send queue that all sockets of the service share. */
export class SendQueue {
  readonly #system: Pick<System, 'after' | 'soon'>;
  readonly #unsent: SendQueueOptions['unsent'];
  readonly #encoded = new WeakMap<Message, Buffer>();
  /** Of the sockets that ever had something unsent. */
  readonly #readers = new WeakMap<WebSocket, Reader>();
  /** Sockets that were cut off and whose `FAREWELL_MS` are over. */
  readonly #ending: WebSocket[] = [];

  constructor({ system, unsent }: SendQueueOptions) {
    this.#system = system;
    this.#unsent = unsent;
  }

  /**
   * Sends messages on a socket that is open; on another it does nothing. A message is encoded once, however many are
   * sent the same object.
   *
   * @param onSent called once they have left this process, or cannot any more
   * @returns false when the reader was too slow and is cut off
   */
  send({ socket, connection }: Peer, messages: readonly Message[], onSent: () => void = () => undefined): boolean {
    if (!isOpen(socket) || messages.length === 0) {
      onSent();
      return true;
    }
    // Corked: most of the cost of a message is the write to its socket.
    connection.cork();
    for (const [index, message] of messages.entries()) {
      const isLast = index === messages.length - 1;
      socket.send(this.#bytesOf(message), { binary: false }, isLast ? () => onSent() : undefined);
    }
    connection.uncork();
    if (socket.bufferedAmount > MAX_UNSENT_BYTES) this.#cutOff(socket);
    else if (socket.bufferedAmount > 0 || this.#readers.has(socket)) this.#unsent.grew(this.#readerOf(socket));
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

  /** Closes a socket; for `FAREWELL_MS` it can still receive the rest and the reason. */
  #cutOff(socket: WebSocket): void {
    this.#unsent.forget(this.#readerOf(socket));
    socket.close(CLOSE_TOO_SLOW, 'too slow');
    const cancel = this.#system.after(FAREWELL_MS, () => this.#endInTurn(socket));
    socket.once('close', cancel);
  }

  /** Many sockets may be cut off at once; they are terminated over several turns. */
  #endInTurn(socket: WebSocket): void {
    if (this.#ending.push(socket) === 1) this.#system.soon(() => this.#endSome());
  }

  #endSome(): void {
    for (const socket of this.#ending.splice(0, ENDED_IN_A_TURN)) socket.terminate();
    if (this.#ending.length > 0) this.#system.soon(() => this.#endSome());
  }
}

function isOpen({ readyState, OPEN }: WebSocket): boolean {
  return readyState === OPEN;
}
