/** Receives drafts over a WebSocket while models write them. They are not recorded. */
import type {
  ChannelMessage,
  FoldedRun,
  NodeStartMessage,
  RichMessage,
  Ticket,
  TokenMessage,
} from '../generated/schemas.js';
import { UnexpectedAnswerError, UnreachableError } from './errors.js';
import { isAborted, overCuts, reader } from './event-stream.js';
import type { Api, CallOptions } from './http.js';
import { SILENCE_MS, escaped, jsonIn, pathOf, queryText } from './http.js';
import type { Outage } from './retry.js';
import type { ClientSystem } from './system.js';
import type { ClientSocket, WebSocketClass } from './web-socket.js';

/** Largest number of messages buffered for a slow reader. Then the client closes the connection and opens another. */
const MAX_WAITING = 10_000;

/** A piece of a draft, or the start of a node. */
export type LiveMessage = TokenMessage | NodeStartMessage;

/** The messages from now until the run ends or the signal aborts. @throws {TypeError} the host has no WebSocket */
export function liveTokens(api: Api, runId: string, { signal }: CallOptions): AsyncIterable<LiveMessage> {
  const { webSocket } = api;
  if (webSocket === undefined) throw new TypeError('The host has no WebSocket: pass one as the option `webSocket`');
  return {
    [Symbol.asyncIterator]() {
      const place = { seq: null };
      const live = (reading: AbortSignal): AsyncGenerator<LiveMessage, void> =>
        overCuts(api, reading, (outage) => connection(api, { runId, webSocket, place, outage, signal: reading }));
      return reader(live, signal);
    },
  };
}

interface LiveRun {
  readonly runId: string;
  readonly webSocket: WebSocketClass;
  /** `seq` of the last event that the service has sent, or null before the first. */
  readonly place: { seq: number | null };
  readonly outage: Outage;
  readonly signal: AbortSignal;
}

/** The messages of one connection. Returns only if the run has ended. @throws {CouncilError} at any other end */
async function* connection(
  api: Api,
  { runId, webSocket, place, outage, signal }: LiveRun,
): AsyncGenerator<LiveMessage, void> {
  // This call gives the reason of a refusal, which a socket does not.
  const path = pathOf('runs', runId, 'state');
  const { seq, status } = await api.json<FoldedRun>({ path, signal, isRepeatable: false });
  if (status === 'completed' || status === 'failed') return;
  const query = { events: 'all', from: (place.seq ??= seq), ticket: await ticketOf(api, signal) };
  signal.throwIfAborted();
  const url = `${api.url.replace(/^http/, 'ws')}/ws/council/${escaped(runId)}${queryText(query)}`;
  for await (const text of messagesOf(new webSocket(url), { system: api.system, signal })) {
    const message = messageIn(text);
    if (message.event === 'run_complete' || message.event === 'run_failed') return;
    if (message.event === 'connected') outage.answered();
    if (message.event === 'run_event') place.seq = message.seq;
    if (message.event !== 'token' && message.event !== 'node_start') continue;
    outage.ended();
    yield message;
  }
  throw new UnreachableError(api.url);
}

/** A ticket, because a socket cannot send a key, or null without a key: a browser sends its cookie. */
async function ticketOf(api: Api, signal: AbortSignal): Promise<string | null> {
  if (!api.isKeyed) return null;
  const { ticket } = await api.json<Ticket>({ method: 'POST', path: pathOf('tickets'), signal });
  return ticket;
}

/** @throws {UnexpectedAnswerError} */
function messageIn(text: string): ChannelMessage | RichMessage {
  const value = jsonIn(text);
  if (isMessage(value)) return value;
  throw new UnexpectedAnswerError('The service sent an invalid message', { status: null });
}

function isMessage(value: unknown): value is ChannelMessage | RichMessage {
  return typeof value === 'object' && value !== null && 'event' in value && typeof value.event === 'string';
}

/** The messages of a socket, until it closes or the signal aborts. */
async function* messagesOf(
  socket: ClientSocket,
  { system, signal }: { readonly system: ClientSystem; readonly signal: AbortSignal },
): AsyncGenerator<string, void> {
  const waiting: string[] = [];
  const over = new AbortController();
  let wake = (): void => undefined;
  const end = (): void => {
    over.abort();
    socket.close();
    wake();
  };
  const disarm = system.after(SILENCE_MS, end);
  socket.addEventListener('message', ({ data }) => {
    disarm();
    if (isAborted(over.signal)) return;
    waiting.push(String(data));
    if (waiting.length === MAX_WAITING) end();
    wake();
  });
  socket.addEventListener('close', end);
  socket.addEventListener('error', end);
  signal.addEventListener('abort', end);
  try {
    for (;;) {
      const messages = waiting.splice(0);
      yield* messages;
      if (messages.length > 0) continue;
      if (isAborted(over.signal)) return;
      await new Promise<void>((resolve) => (wake = resolve));
    }
  } finally {
    disarm();
    signal.removeEventListener('abort', end);
    end();
  }
}
