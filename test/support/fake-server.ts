/** A server of a model or search engine, or a receiver. A script sets its answers and faults. */
import { once } from 'node:events';
import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import { createServer } from 'node:http';

/** One received request. */
export interface Call<Body> {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  /** The body as received. */
  readonly text: string;
  readonly body: Body;
  /** `performance.now()` at its arrival. */
  readonly atMs: number;
}

/** Answers one request, or leaves it without an answer. */
export type Reply = (response: ServerResponse) => void;

/** Chooses the reply to a call; `index` counts all calls from 0. */
export type Script<Body> = (call: Call<Body>, index: number) => Reply;

export interface FakeServer<Body> {
  /** `http://127.0.0.1:PORT`. */
  readonly url: string;
  /** Every call so far, oldest first. */
  readonly calls: readonly Call<Body>[];
  /** Number of callers that disconnected before their answer was complete. */
  abandoned(): number;
  /** Calls that are neither answered nor abandoned. */
  open(): number;
  /** Replaces the script: a function, or a list of replies in order, whose last one repeats. */
  answerBy(script: Script<Body> | readonly Reply[]): void;
  /** Resolves once a condition on this server holds. */
  until(condition: () => boolean): Promise<void>;
  /** Resets connections and refuses new ones, as a killed process does. */
  goAway(): Promise<void>;
  /** Accepts connections again at the same port. */
  comeBack(): Promise<void>;
  stop(): Promise<void>;
}

/**
 * Starts a server on a free port that answers by a script. `Body` is the type of its requests, which it does not check.
 */
export async function fakeServer<Body>(script: Script<Body> | readonly Reply[]): Promise<FakeServer<Body>> {
  const calls: Call<Body>[] = [];
  const checks = new Set<() => void>();
  let choose = chooser(script);
  let [abandoned, open] = [0, 0];
  const check = (): void => checks.forEach((each) => each());
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    open += 1;
    response.on('close', () => {
      open -= 1;
      if (!response.writableFinished) abandoned += 1;
      check();
    });
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { method = '', url: path = '', headers } = request;
      const text = Buffer.concat(chunks).toString();
      const body = (text === '' ? null : JSON.parse(text)) as Body;
      const call = { method, path, headers, text, body, atMs: performance.now() };
      calls.push(call);
      choose(call, calls.length - 1)(response);
      check();
    });
  });
  const listen = async (port: number): Promise<void> => {
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
  };
  const leave = async (): Promise<void> => {
    if (!server.listening) return;
    const closed = once(server, 'close');
    server.close();
    server.closeAllConnections();
    await closed;
  };
  await listen(0);
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return {
    url: `http://127.0.0.1:${port}`,
    calls,
    abandoned: () => abandoned,
    open: () => open,
    answerBy: (next) => (choose = chooser(next)),
    until: (condition) =>
      new Promise((resolve) => {
        const look = (): void => {
          if (!condition()) return;
          checks.delete(look);
          resolve();
        };
        checks.add(look);
        look();
      }),
    goAway: leave,
    comeBack: () => listen(port),
    stop: leave,
  };
}

/** Any body with status 200: text unchanged, other values as JSON. */
export function sends(body: unknown): Reply {
  return (response) => {
    response.writeHead(200, { 'Content-Type': 'application/json' });
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
  };
}

/** Any status with a text. */
export function answersStatus(status: number, text = ''): Reply {
  return (response) => response.writeHead(status).end(text);
}

/** Server-sent events with these data: text unchanged, other values as JSON. */
export function streams(events: readonly unknown[], { ends = true }: { readonly ends?: boolean } = {}): Reply {
  return (response) => {
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    for (const event of events) {
      response.write(`data: ${typeof event === 'string' ? event : JSON.stringify(event)}\r\n\r\n`);
    }
    if (ends) response.end();
  };
}

/** Reads the request and never answers. */
export const hangs: Reply = () => undefined;

/** Starts an answer and never ends it. */
export const hangsMidBody: Reply = (response) => {
  response.writeHead(200, { 'Content-Type': 'application/json' });
  response.write('{"candidates": [');
};

/** Resets the connection without an answer. */
export const resets: Reply = (response) => response.socket?.resetAndDestroy();

/** Resets the connection once the beginning of an answer is sent. */
export const resetsMidBody: Reply = (response) => {
  response.writeHead(200, { 'Content-Type': 'application/json' });
  response.write('{"candidates": [', () => response.socket?.resetAndDestroy());
};

/** Ends the connection in the middle of a body with a Content-Length. */
export const endsMidBody: Reply = (response) => {
  response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': '1000' });
  response.write('{"candidates": [', () => response.socket?.destroy());
};

function chooser<Body>(script: Script<Body> | readonly Reply[]): Script<Body> {
  if (typeof script === 'function') return script;
  let used = 0;
  return () => {
    const reply = script[Math.min(used, script.length - 1)] ?? answersStatus(500, 'The script is empty');
    used += 1;
    return reply;
  };
}
