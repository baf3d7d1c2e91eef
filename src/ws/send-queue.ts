/**
 * Sends messages to sockets. Frames each message once for all its recipients, writes a batch for one socket together,
 * and disconnects clients that read too slowly.
 */
import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';
import type { ChannelMessage, RichMessage } from '../generated/schemas.js';
import type { System } from '../system/system.js';
import type { Holder, SharedBytes } from '../system/async/shared-bytes.js';
import { CLOSE_TOO_SLOW } from './messages.js';

/** Unsent bytes at which the service disconnects a slow reader, which can reconnect and lose nothing. */
const MAX_UNSENT_BYTES = 1024 * 1024;
/** How long a slow reader may take to receive the close frame, in milliseconds. Its unsent bytes stay in memory. */
const FAREWELL_MS = 2_000;

type Message = ChannelMessage | RichMessage;

/** A socket and its connection, to which frames are written: ws would write each as two buffers, one of them its own. */
export interface Peer {
  readonly socket: WebSocket;
  readonly connection: Pick<Duplex, 'cork' | 'uncork' | 'write'>;
}

export interface SendQueueOptions {
  readonly system: Pick<System, 'after'>;
  readonly unsent: Pick<SharedBytes, 'update' | 'forget'>;
}

/** The send queue that all sockets of the service share. */
export class SendQueue {
  readonly #system: Pick<System, 'after'>;
  readonly #unsent: SendQueueOptions['unsent'];
  readonly #frames = new WeakMap<Message, Buffer>();
  /** Frames of events: clients that read the same history at different times share what they have not taken. */
  readonly #eventFrames = new WeakValues<Buffer>();
  /** Readers of the sockets that ever had unsent bytes. */
  readonly #readers = new WeakMap<WebSocket, Holder>();

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
      connection.write(this.#frameOf(message), isLast ? () => onSent() : undefined);
    }
    connection.uncork();
    if (socket.bufferedAmount > MAX_UNSENT_BYTES) this.#cutOff(socket);
    else if (socket.bufferedAmount > 0 || this.#readers.has(socket)) this.#unsent.update(this.#readerOf(socket));
    return isOpen(socket);
  }

  #frameOf(message: Message): Buffer {
    let frame = this.#frames.get(message);
    if (frame === undefined) {
      const make = (): Buffer => textFrame(JSON.stringify(message));
      frame =
        message.event === 'run_event'
          ? this.#eventFrames.of(`${message.run_id} ${message.seq} ${message.hash}`, make)
          : make();
      this.#frames.set(message, frame);
    }
    return frame;
  }

  #readerOf(socket: WebSocket): Holder {
    const known = this.#readers.get(socket);
    if (known !== undefined) return known;
    const reader = { bytes: () => socket.bufferedAmount, cutOff: () => this.#cutOff(socket) };
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

/** The first byte of a frame that holds a whole text message (RFC 6455, section 5.2). */
const WHOLE_TEXT = 0x81;

/** A text as one frame of a server, without a mask. */
function textFrame(text: string): Buffer {
  const length = Buffer.byteLength(text);
  const headBytes = length < 126 ? 2 : length < 65_536 ? 4 : 10;
  const frame = Buffer.allocUnsafeSlow(headBytes + length);
  frame[0] = WHOLE_TEXT;
  if (headBytes === 2) frame[1] = length;
  else if (headBytes === 4) {
    frame[1] = 126;
    frame.writeUInt16BE(length, 2);
  } else {
    frame[1] = 127;
    frame.writeBigUInt64BE(BigInt(length), 2);
  }
  frame.write(text, headBytes);
  return frame;
}

function isOpen({ readyState, OPEN }: WebSocket): boolean {
  return readyState === OPEN;
}

/** Values by key, each for as long as something else holds it. So equal large values of many readers are in memory once. */
class WeakValues<Value extends object> {
  readonly #refs = new Map<string, WeakRef<Value>>();
  readonly #dropped = new FinalizationRegistry<string>((key) => {
    // Another value may have taken the place of the dropped one.
    if (this.#refs.get(key)?.deref() === undefined) this.#refs.delete(key);
  });

  /** The value of a key, or the one that `make` returns, which becomes the value. */
  of(key: string, make: () => Value): Value {
    const known = this.#refs.get(key)?.deref();
    if (known !== undefined) return known;
    const value = make();
    this.#refs.set(key, new WeakRef(value));
    this.#dropped.register(value, key);
    return value;
  }
}
