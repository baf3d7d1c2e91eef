/** A receiver of webhooks: keeps every request with its raw body, and answers by a script. */
import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import type { WebhookMessage } from '../../src/generated/schemas.js';
import type { FakeServer } from './fake-server.js';
import { fakeServer } from './fake-server.js';

/** One received delivery. */
export interface Received {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  /** As received. */
  readonly body: string;
  readonly message: WebhookMessage;
}

/** Answers one delivery, or leaves it without an answer. */
export type Answering = (response: ServerResponse, received: Received) => void;

export interface Receiver extends Pick<FakeServer<WebhookMessage>, 'url' | 'goAway' | 'comeBack' | 'stop'> {
  readonly received: readonly Received[];
  answerBy(answering: Answering): void;
  /** Resolves once a condition on what it has received holds. */
  until(condition: (received: readonly Received[]) => boolean): Promise<void>;
}

/** Any status without a body. */
export function answers(status: number, headers: Readonly<Record<string, string>> = {}): Answering {
  return (response) => void response.writeHead(status, headers).end();
}

/** Starts one on a free port. It answers 204. */
export async function startReceiver(): Promise<Receiver> {
  const received: Received[] = [];
  let answer = answers(204);
  const server = await fakeServer<WebhookMessage>(({ path, headers, text: body, body: message }) => (response) => {
    const each = { path, headers, body, message };
    received.push(each);
    answer(response, each);
  });
  return {
    ...server,
    received,
    answerBy: (next) => (answer = next),
    until: (condition) => server.until(() => condition(received)),
  };
}
