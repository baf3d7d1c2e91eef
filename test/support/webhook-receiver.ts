/** A receiver of webhooks: keeps every request with its raw body, and answers by a script. */
import { once } from 'node:events';
import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import type { WebhookMessage } from '../../src/generated/schemas.js';

/** One received delivery. */
export interface Received {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly message: WebhookMessage;
}

/** Answers one delivery, or leaves it without an answer. */
export type Answering = (response: ServerResponse, received: Received) => void;

export interface Receiver {
  /** `http://127.0.0.1:PORT`. */
  readonly url: string;
  readonly port: number;
  readonly received: readonly Received[];
  answerBy(answering: Answering): void;
  /** Resolves once a condition on what it has received holds. */
  until(condition: (received: readonly Received[]) => boolean): Promise<void>;
  stop(): Promise<void>;
}

/** Any status without a body. */
export function answers(status: number, headers: Readonly<Record<string, string>> = {}): Answering {
  return (response) => void response.writeHead(status, headers).end();
}

/** Starts one, on a free port unless a port is given. */
export async function startReceiver(answering: Answering = answers(204), at = 0): Promise<Receiver> {
  const received: Received[] = [];
  const checks = new Set<() => void>();
  let answer = answering;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString();
      const each = {
        path: request.url ?? '',
        headers: request.headers,
        body,
        message: JSON.parse(body) as WebhookMessage,
      };
      received.push(each);
      answer(response, each);
      for (const check of checks) check();
    });
    request.on('error', () => undefined);
  });
  server.listen(at, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    received,
    answerBy: (next) => (answer = next),
    until: (condition) =>
      new Promise((resolve) => {
        const check = (): void => {
          if (!condition(received)) return;
          checks.delete(check);
          resolve();
        };
        checks.add(check);
        check();
      }),
    async stop() {
      if (!server.listening) return;
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
