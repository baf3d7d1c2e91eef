/** The rich stream of a run: sends a socket every event, and drafts while the model writes them. */
import type { ChannelMessage } from '../generated/schemas.js';
import type { RunFeed } from '../run/runs/feed.js';
import type { RunQueries } from '../projections/run-queries.js';
import type { RunEvent } from '../run/events.js';
import type { TokenBus } from '../run/runs/tokens.js';
import { openEnding } from './channel.js';
import { CLOSE_FAULT, CLOSE_NORMAL, closeCodeOf, connectedMessage, unknownRunMessage } from './messages.js';
import type { Message } from './rich-messages.js';
import { RichMessages, isEnd } from './rich-messages.js';
import type { SendQueue, Peer } from './send-queue.js';

/** Unsent bytes above which the service reads no further history and sends no tokens until the client has caught up. */
const PAUSE_BYTES = 64 * 1024;

export interface RichChannelOptions {
  readonly feed: Pick<RunFeed, 'follow'>;
  readonly queries: Pick<RunQueries, 'find'>;
  readonly tokens: Pick<TokenBus, 'subscribe'>;
  readonly sendQueue: Pick<SendQueue, 'send'>;
  readonly onFault: (error: unknown) => void;
}

interface RichTarget {
  readonly runId: string;
  /** Revision of the last event that the client knows. */
  readonly after: number;
}

/** Serves the rich stream of a run on an open socket. */
export function serveRichChannel(peer: Peer, target: RichTarget, options: RichChannelOptions): void {
  const { socket } = peer;
  const { sendQueue } = options;
  const { signal, abort, close } = openEnding(peer);
  // Returns a promise if the client reads slowly; it resolves once more may be sent.
  const push = (messages: readonly Message[]): void | Promise<void> => {
    if (signal.aborted) return;
    const { sent, onSent } = sending();
    if (!sendQueue.send(peer, messages, onSent)) abort();
    if (messages.some(isEnd)) close(CLOSE_NORMAL);
    return isBehind() ? sent : undefined;
  };
  const isBehind = (): boolean => socket.bufferedAmount > PAUSE_BYTES;
  sendRun(target, { ...options, push, isBehind, signal }).then(
    (isKnown) => {
      if (isKnown) return;
      void push([unknownRunMessage(target.runId)]);
      close(CLOSE_NORMAL);
    },
    (error: unknown) => {
      const code = closeCodeOf(error);
      // An error after the client has gone, or while the service stops, is no fault.
      if (code === CLOSE_FAULT && socket.readyState === socket.OPEN) options.onFault(error);
      close(code);
    },
  );
}

/** A promise that `onSent` resolves. */
function sending(): { readonly sent: Promise<void>; readonly onSent: () => void } {
  let onSent = (): void => undefined;
  const sent = new Promise<void>((resolve) => (onSent = resolve));
  return { sent, onSent };
}

interface RichChannelDeps extends RichChannelOptions {
  readonly push: (messages: readonly Message[]) => void | Promise<void>;
  /** Whether the client has much to read. */
  readonly isBehind: () => boolean;
  readonly signal: AbortSignal;
}

/**
 * Sends a run to its end; false if it is unknown. Reads all events, because a node's end needs the data of its start.
 */
async function sendRun(
  { runId, after }: RichTarget,
  { feed, queries, tokens, push, isBehind, signal }: RichChannelDeps,
): Promise<boolean> {
  const run = await queries.find(runId);
  if (run === null) return false;
  const translator = new RichMessages(runId, after);
  // Sent with the first event, so that a client of an unreadable run gets no message.
  let greeting: readonly ChannelMessage[] = [connectedMessage(runId, run.status)];
  // The offset of a later token shows a client that it missed some; the end of the node brings the whole draft.
  const stopListening = tokens.subscribe(runId, (token) => {
    if (!isBehind()) void push(translator.token(token));
  });
  const onEvent = (event: RunEvent): void | Promise<void> => {
    const messages = [...greeting, ...translator.event(event)];
    greeting = [];
    return push(messages);
  };
  try {
    await feed.follow(runId, { from: 0, onEvent, signal });
  } finally {
    stopListening?.();
  }
  return true;
}
