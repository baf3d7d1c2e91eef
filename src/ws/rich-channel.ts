/** One connection's life on the rich stream: every event of a run, and what is said of it before it is recorded. */
import type { WebSocket } from 'ws';
import { ServiceStopping } from '../errors.js';
import type { ChannelMessage, RichMessage } from '../generated/schemas.js';
import type { RunFeed } from '../projections/run-feed.js';
import type { RunQueries } from '../projections/run-queries.js';
import type { TokenBus } from '../run/tokens.js';
import { CLOSE_FAULT, CLOSE_NORMAL, CLOSE_RESTART, CLOSE_TOO_SLOW } from './close-codes.js';
import { connectedMessage, unknownRunMessage } from './messages.js';
import { isEnd, RichStory } from './rich-messages.js';
import { sendMessage } from './send-message.js';

/** Unsent bytes above which history is read no further until the client has taken what was sent. */
const PAUSE_BYTES = 64 * 1024;

export interface RichChannelOptions {
  readonly feed: Pick<RunFeed, 'follow'>;
  readonly queries: Pick<RunQueries, 'state'>;
  readonly tokens: Pick<TokenBus, 'subscribe'>;
  readonly onFault: (error: unknown) => void;
}

interface Wanted {
  readonly runId: string;
  /** Revision of the last event that the client knows already. */
  readonly after: number;
}

/** Serves the rich stream of a run on an open socket. */
export function serveRichChannel(socket: WebSocket, wanted: Wanted, options: RichChannelOptions): void {
  const closed = new AbortController();
  socket.on('close', () => closed.abort());
  const end = (code: number, reason?: string): void => {
    socket.close(code, reason);
    closed.abort();
  };
  /** Resolves once the client has taken enough to be sent more. */
  const push = async (messages: readonly (ChannelMessage | RichMessage)[]): Promise<void> => {
    for (const [index, message] of messages.entries()) {
      if (closed.signal.aborted) return;
      const isLast = index === messages.length - 1;
      const sent = new Promise<void>((resolve) => {
        if (!sendMessage(socket, message, isLast ? resolve : undefined)) end(CLOSE_TOO_SLOW, 'too slow');
      });
      if (isEnd(message)) end(CLOSE_NORMAL);
      if (isLast && socket.bufferedAmount > PAUSE_BYTES) await sent;
    }
  };
  told(wanted, { ...options, push, signal: closed.signal }).then(
    (isKnown) => {
      if (isKnown) return;
      void push([unknownRunMessage(wanted.runId)]);
      end(CLOSE_NORMAL);
    },
    (error: unknown) => {
      if (error instanceof ServiceStopping) return end(CLOSE_RESTART);
      // A socket that is closing, because the client has gone or the service stops, is no fault.
      if (socket.readyState === socket.OPEN) options.onFault(error);
      end(CLOSE_FAULT);
    },
  );
}

interface Telling extends RichChannelOptions {
  readonly push: (messages: readonly (ChannelMessage | RichMessage)[]) => Promise<void>;
  readonly signal: AbortSignal;
}

/** Tells a run to its end; false when there is none. What a node's start told is needed at its end: all is read. */
async function told({ runId, after }: Wanted, { feed, queries, tokens, push, signal }: Telling): Promise<boolean> {
  const run = await queries.state(runId);
  if (run === null) return false;
  const story = new RichStory(runId, after);
  await push([connectedMessage(run)]);
  const leave = tokens.subscribe(runId, (token) => void push(story.token(token)));
  try {
    await feed.follow(runId, { from: 0, onEvent: (event) => push(story.event(event)), signal });
  } finally {
    leave?.();
  }
  return true;
}
