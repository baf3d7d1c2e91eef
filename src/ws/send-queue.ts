/**
 * Sends messages: each is encoded once for all its recipients, a batch for one socket is one write, and unsent bytes are
 * bounded per socket and in all, so that stalled readers cost little.
 */
import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';
import type { ChannelMessage, RichMessage } from '../generated/schemas.js';
import type { System } from '../system/system.js';
import { CLOSE_TOO_SLOW } from './messages.js';

/** Unsent bytes at which a slow reader is cut off. It can connect again and lose nothing. */
const MAX_UNSENT_BYTES = 1024 * 1024;
/** Unsent bytes of all sockets together beyond which the slowest readers are cut off. */
const MAX_UNSENT_IN_ALL_BYTES = 64 * 1024 * 1024;
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
  /** Default: 64 MiB. */
  readonly maxBytes?: number;
}

/** The send queue that all sockets of the service share. */
export class SendQueue {
  readonly #system: Pick<System, 'after' | 'soon'>;
  readonly #maxBytes: number;
  readonly #encoded = new WeakMap<Message, Buffer>();
  /** Unsent bytes by socket when it last sent or was looked at: never less than there are. */
  readonly #unsent = new Map<WebSocket, number>();
  #total = 0;
  /** Sockets that were cut off and whose `FAREWELL_MS` are over. */
  readonly #ending: WebSocket[] = [];

  constructor({ system, maxBytes = MAX_UNSENT_IN_ALL_BYTES }: SendQueueOptions) {
    this.#system = system;
    this.#maxBytes = maxBytes;
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
    this.#note(socket);
    if (socket.bufferedAmount > MAX_UNSENT_BYTES) this.#cutOff(socket);
    while (this.#total > this.#maxBytes && this.#lookAgain() > this.#maxBytes) this.#cutOff(this.#slowest(socket));
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

  #note(socket: WebSocket): void {
    const before = this.#unsent.get(socket);
    const now = socket.bufferedAmount;
    if (before === undefined && now === 0) return;
    if (before === undefined) socket.once('close', () => this.#forget(socket));
    this.#unsent.set(socket, now);
    this.#total += now - (before ?? 0);
  }

  /** Recounts unsent bytes: sockets that have sent nothing lately may have caught up. */
  #lookAgain(): number {
    for (const socket of this.#unsent.keys()) this.#note(socket);
    return this.#total;
  }

  #slowest(sender: WebSocket): WebSocket {
    let [slowest, most] = [sender, -1];
    for (const [socket, bytes] of this.#unsent) if (bytes > most) [slowest, most] = [socket, bytes];
    return slowest;
  }

  /** Closes a socket; for `FAREWELL_MS` it can still receive the rest and the reason. */
  #cutOff(socket: WebSocket): void {
    this.#forget(socket);
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

  #forget(socket: WebSocket): void {
    this.#total -= this.#unsent.get(socket) ?? 0;
    this.#unsent.delete(socket);
  }
}

function isOpen({ readyState, OPEN }: WebSocket): boolean {
  return readyState === OPEN;
}
