/** Random WebSocket clients: some follow the protocol, most make an error. */
import { createHash } from 'node:crypto';
import type { Socket } from 'node:net';
import { hostileTexts } from './hostile-texts.js';
import { openSocket } from './raw-exchange.js';
import { choicesBy } from './seeded-random.js';

/** The messages of a client, and how it disconnects. */
export interface RandomSocket {
  /** With its query. */
  readonly path: string;
  readonly handshake: string;
  /** Written in order after the handshake; a number waits for this many turns of the event loop. */
  readonly writes: readonly (Buffer | number)[];
  /** How it disconnects: with a closing frame, by ending its side, or by destroying the connection. */
  readonly leaves: 'closes' | 'ends' | 'vanishes';
  /** The codes of its closing frames; the service answers with the same code. */
  readonly codes: readonly number[];
}

/** The answers of the service. */
export interface SocketStory {
  /** Status of the answer to the handshake, or null if none came. */
  readonly status: number | null;
  /** Body of an answer that refuses the handshake. */
  readonly body: string;
  readonly texts: readonly string[];
  readonly otherFrames: readonly number[];
  /** The code of the service's closing frame, or null if none came. */
  readonly code: number | null;
}

const [CONTINUED, TEXT, BINARY, CLOSE, PING, PONG] = [0, 1, 2, 8, 9, 10];
const KEY = 'dGhlIHNhbXBsZSBub25jZQ==';
/** The accept value for that key (RFC 6455, section 1.3). */
const ACCEPT = createHash('sha1').update(`${KEY}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
const ODD_HEADERS = [
  ...['Sec-WebSocket-Protocol: chat, x', 'Sec-WebSocket-Extensions: permessage-deflate', 'Origin: null'],
  ...[
    'Origin: https://elsewhere.example',
    'Sec-WebSocket-Protocol: ,',
    'Sec-WebSocket-Extensions: x; =',
    'Cookie: =;=',
  ],
  ...['Authorization: Bearer x', 'Content-Length: 0', 'Content-Length: 3', 'Transfer-Encoding: chunked', 'Expect: x'],
  ...[`X: ${'x'.repeat(8_000)}`, 'Host: elsewhere.example', 'Connection: close', 'Upgrade: h2c', 'TE: trailers'],
];
const QUERIES = [
  ...['', '', '', '?events=all', '?events=all', '?events=all&from=3', '?events=all&from=-1', '?events=all&from=1e3'],
  ...['?events=all&from=9007199254740993', '?events=all&from=', '?events=all&from=1&from=2', '?events=some&from=x'],
  ...['?events=all&events=x', '?%', '?ticket=x', '?events=ALL', '?events=all&from=-2', '?from=%00', '?events[]=all'],
  ...['?events=all&from=999999999', '?events=all&since=2026-13-45', '??', '?events=all#from=1'],
];

/** A function that makes a new random client at each call; `ids` are ids of runs. */
export function randomSockets({
  random,
  ids,
}: {
  readonly random: () => number;
  readonly ids: readonly string[];
}): () => RandomSocket {
  const { below, happens, oneOf } = choicesBy(random);
  const bytes = (length: number): Buffer => Buffer.from(Array.from({ length }, () => below(256)));

  function pathOf(): string {
    const id = happens(0.75) ? oneOf(ids) : encodeURIComponent(oneOf(hostileTexts()).toWellFormed().slice(0, 500));
    const path = happens(0.9)
      ? `/ws/council/${id}`
      : oneOf(['/ws', '/ws/council/', `/ws/council/${id}/x`, '/', '//ws']);
    return path + (happens(0.05) ? '/' : '') + oneOf(QUERIES);
  }

  function handshakeOf(path: string): string {
    const lines = [
      `${happens(0.03) ? oneOf(['POST', 'HEAD', 'OPTIONS']) : 'GET'} ${path} HTTP/${happens(0.01) ? '1.0' : '1.1'}`,
      'Host: 127.0.0.1',
      `Upgrade: ${happens(0.03) ? oneOf(['h2c', 'websocket, x', 'WebSocket', 'x']) : 'websocket'}`,
      `Connection: ${happens(0.03) ? oneOf(['keep-alive', 'upgrade, close', '']) : 'Upgrade'}`,
      `Sec-WebSocket-Key: ${happens(0.04) ? oneOf(['', 'x', `${KEY}=`, 'ä']) : KEY}`,
      `Sec-WebSocket-Version: ${happens(0.04) ? oneOf(['8', '12', '', '13, 8', 'x']) : '13'}`,
    ];
    if (happens(0.04)) lines.splice(1 + below(5), 1);
    while (happens(0.15)) lines.push(oneOf(ODD_HEADERS));
    return `${lines.join('\r\n')}\r\n\r\n`;
  }

  /** Frames, one message or some of them. */
  function framesOf(codes: number[]): readonly (Buffer | number)[] {
    const text = Buffer.from(oneOf(['{}', '{"event":"connected"}', '[', 'x', '', 'ö', '\u0000', 'x'.repeat(4_096)]));
    switch (below(18)) {
      case 0:
      case 1:
      case 2:
        return [frame(TEXT, text)];
      case 3:
        return [frame(BINARY, bytes(below(4_097)))];
      case 4:
        return [frame(oneOf([TEXT, BINARY]), Buffer.alloc(4_097 + below(70_000), 'x'))];
      case 5:
        return [frame(TEXT, text.subarray(0, 3), { isLast: false }), 2, frame(CONTINUED, text)];
      case 6:
        return [frame(TEXT, text, { isLast: false }), frame(PING, bytes(4)), frame(CONTINUED, bytes(3))];
      case 7:
        return Array.from({ length: 200 }, () => frame(oneOf([PING, PONG]), bytes(below(126))));
      case 8:
        return Array.from({ length: 100 }, () => frame(CONTINUED, Buffer.from('x'), { isLast: false }));
      case 9:
        return [frame(oneOf([CONTINUED, 3, 7, 11, 15]), text)];
      case 10:
        return [frame(TEXT, text, { isMasked: false })];
      case 11:
        return [frame(TEXT, text, { reserved: 1 + below(7) })];
      case 12:
        return [frame(oneOf([PING, PONG, CLOSE]), bytes(126 + below(900)))];
      case 13:
        return [headerOf({ opcode: TEXT, isLast: true, reserved: 0 }, oneOf([2 ** 20, 2 ** 40, 2 ** 53 - 1]))];
      case 14: {
        const code = oneOf([0, 999, 1000, 1001, 1004, 1005, 1006, 1015, 1016, 2999, 3000, 4999, 5000, 65_535]);
        codes.push(code);
        return [frame(CLOSE, Buffer.concat([codeOf(code), bytes(below(20))]))];
      }
      case 15:
        return [frame(CLOSE, bytes(below(2)))];
      case 16:
        return [frame(TEXT, bytes(1 + below(50)))];
      default:
        return [bytes(1 + below(500)), 3];
    }
  }

  return () => {
    const path = pathOf();
    const codes = [1000];
    const writes: (Buffer | number)[] = [];
    while (happens(0.7)) writes.push(...framesOf(codes), below(3));
    const leaves = oneOf(['closes', 'closes', 'ends', 'vanishes'] as const);
    return { path, handshake: handshakeOf(path), writes, leaves, codes };
  };
}

/** Plays a client against a service; resolves once the connection is closed. */
export async function playSocket(url: string, { handshake, writes, leaves }: RandomSocket): Promise<SocketStory> {
  const socket = await openSocket(url);
  const reading = new FrameReader();
  let isClosing = false;
  const close = (): void => {
    if (isClosing) return;
    isClosing = true;
    socket.write(frame(CLOSE, codeOf(1000)));
  };
  const answered = new Promise<void>((resolve) => {
    socket.on('data', (chunk: Buffer) => {
      reading.take(chunk);
      if (reading.isAnswered) resolve();
      if (reading.code === null) return;
      close();
      socket.end();
    });
    socket.once('close', resolve);
  });
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  // The service may close before everything is written.
  socket.on('error', () => socket.destroy());
  socket.write(handshake, 'latin1');
  await answered;
  if (reading.status === 101) await writeAll(socket, writes);
  if (leaves === 'vanishes') socket.destroy();
  else if (leaves === 'ends' || reading.status !== 101) socket.end();
  else close();
  await closed;
  return reading;
}

async function writeAll(socket: Socket, writes: RandomSocket['writes']): Promise<void> {
  for (const each of writes) {
    if (socket.destroyed || !socket.writable) return;
    if (typeof each !== 'number') socket.write(each);
    else for (let turn = 0; turn < each; turn += 1) await new Promise(setImmediate);
  }
}

interface FrameOptions {
  readonly isLast?: boolean;
  readonly isMasked?: boolean;
  /** The three reserved bits. */
  readonly reserved?: number;
}

function frame(opcode: number, payload: Buffer, options: FrameOptions = {}): Buffer {
  const { isLast = true, isMasked = true, reserved = 0 } = options;
  const header = headerOf({ opcode, isLast, reserved, isMasked }, payload.length);
  // A mask of zeros leaves the payload unchanged.
  return Buffer.concat(isMasked ? [header, Buffer.alloc(4), payload] : [header, payload]);
}

function headerOf(
  {
    opcode,
    isLast,
    reserved,
    isMasked = true,
  }: Required<Pick<FrameOptions, 'isLast' | 'reserved'>> & {
    readonly opcode: number;
    readonly isMasked?: boolean;
  },
  length: number,
): Buffer {
  const first = (isLast ? 0x80 : 0) | (reserved << 4) | opcode;
  const mask = isMasked ? 0x80 : 0;
  if (length < 126) return Buffer.from([first, mask | length]);
  const long = Buffer.alloc(length < 65_536 ? 4 : 10);
  long.set([first, mask | (length < 65_536 ? 126 : 127)]);
  if (length < 65_536) long.writeUInt16BE(length, 2);
  else long.writeBigUInt64BE(BigInt(length), 2);
  return long;
}

function codeOf(code: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16BE(code);
  return bytes;
}

/** Reads an answer to a handshake and what follows it. */
class FrameReader implements SocketStory {
  status: number | null = null;
  body = '';
  code: number | null = null;
  readonly texts: string[] = [];
  readonly otherFrames: number[] = [];
  #rest = Buffer.alloc(0);
  /** Bytes of the body that are still to come. A request that ends before its own body gets a second answer, with 400. */
  #bodyLeft = 0;

  get isAnswered(): boolean {
    return this.status !== null;
  }

  take(chunk: Buffer): void {
    this.#rest = Buffer.concat([this.#rest, chunk]);
    if (this.status === null && !this.#takeHead()) return;
    if (this.status === 101) while (this.#takeFrame());
    else {
      const part = this.#rest.subarray(0, this.#bodyLeft);
      this.body += part.toString('utf8');
      this.#bodyLeft -= part.length;
      this.#rest = Buffer.alloc(0);
    }
  }

  #takeHead(): boolean {
    const end = this.#rest.indexOf('\r\n\r\n');
    if (end < 0) return false;
    const head = this.#rest.subarray(0, end).toString('latin1');
    this.status = Number(head.split(' ')[1]);
    if (this.status === 101 && !head.includes(ACCEPT)) throw new Error(`The handshake has a wrong answer: ${head}`);
    this.#bodyLeft = Number(/\r\nContent-Length: (\d+)/i.exec(head)?.[1] ?? 0);
    this.#rest = this.#rest.subarray(end + 4);
    return true;
  }

  #takeFrame(): boolean {
    const [first = 0, second = 0] = this.#rest;
    const start = second < 126 ? 2 : second === 126 ? 4 : 10;
    if (this.#rest.length < start) return false;
    const length =
      second < 126 ? second : second === 126 ? this.#rest.readUInt16BE(2) : Number(this.#rest.readBigUInt64BE(2));
    if (this.#rest.length < start + length) return false;
    const payload = this.#rest.subarray(start, start + length);
    this.#rest = this.#rest.subarray(start + length);
    if (first === (0x80 | TEXT)) this.texts.push(payload.toString('utf8'));
    else if (first === (0x80 | CLOSE)) this.code = length === 0 ? 1005 : payload.readUInt16BE();
    else this.otherFrames.push(first);
    return true;
  }
}
