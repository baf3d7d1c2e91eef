/** A client of the channel that keeps all messages and waits for conditions. */
import { WebSocket } from 'ws';

export interface ChannelMessage {
  readonly event: string;
  readonly [field: string]: unknown;
}

export interface ChannelClient {
  readonly socket: WebSocket;
  readonly messages: readonly ChannelMessage[];
  /** Resolves with the first matching message, past or future; rejects if the socket closes before. */
  until(fits: (message: ChannelMessage) => boolean): Promise<ChannelMessage>;
  /** Resolves with the close code. */
  readonly closed: Promise<number>;
}

/** Connects to a run's channel; `url` is the service's, as http. */
export function openChannel(url: string, path: string, headers: Readonly<Record<string, string>> = {}): ChannelClient {
  const socket = new WebSocket(`${url.replace(/^http/, 'ws')}${path}`, { headers });
  const messages: ChannelMessage[] = [];
  const waiting = new Set<() => void>();
  const check = (): void => waiting.forEach((each) => each());
  let isClosed = false;
  socket.on('message', (data: Buffer) => {
    const message = JSON.parse(data.toString('utf8')) as ChannelMessage;
    messages.push(message);
    check();
  });
  const closed = new Promise<number>((resolve) => {
    socket.on('error', () => undefined);
    socket.on('close', (code) => {
      isClosed = true;
      resolve(code);
      check();
    });
  });
  const until = (fits: (message: ChannelMessage) => boolean): Promise<ChannelMessage> =>
    new Promise((resolve, reject) => {
      const look = (): void => {
        const found = messages.find(fits);
        if (found === undefined && !isClosed) return;
        waiting.delete(look);
        if (found === undefined) reject(new Error(`The channel closed after ${JSON.stringify(messages)}`));
        else resolve(found);
      };
      waiting.add(look);
      look();
    });
  return { socket, messages: messages, until, closed };
}

/** The status and body of a refused upgrade. */
export function refusedUpgrade(
  url: string,
  path: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<{ readonly status: number; readonly body: string }> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(`${url.replace(/^http/, 'ws')}${path}`, { headers });
    socket.on('open', () => {
      socket.close();
      reject(new Error('The upgrade was accepted'));
    });
    socket.on('error', () => undefined);
    socket.on('unexpected-response', (_request, response) => {
      let body = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => (body += chunk));
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body }));
    });
  });
}
