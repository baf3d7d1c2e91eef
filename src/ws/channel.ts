/**
 * The channels of a run on one connection: the default one pushes its state as it becomes durable, the rich stream every
 * event and token, until the run has ended.
 */
import type { ChannelMessage, RichMessage, RunCompletedData } from '../generated/schemas.js';
import type { RunsInMemory } from '../projections/runs-in-memory.js';
import type { RunState } from '../run/state.js';
import type { Announced, Announcement } from './messages.js';
import {
  CLOSE_FAULT,
  CLOSE_NORMAL,
  NOTHING_ANNOUNCED,
  announce,
  closeCodeOf,
  connectedMessage,
  unknownRunMessage,
} from './messages.js';
import type { RunFeed } from '../projections/run-feed.js';
import type { RunQueries } from '../projections/run-queries.js';
import type { Token, TokenBus } from '../run/live/tokens.js';
import type { RunEvent } from '../run/events.js';
import type { SendQueue, Peer } from './send-queue.js';

export interface ChannelOptions {
  readonly views: Pick<RunsInMemory, 'watch'>;
  readonly sendQueue: Pick<SendQueue, 'send'>;
  readonly onFault: (error: unknown) => void;
}

/** Serves a run's channel on an open socket. */
export function serveChannel(peer: Peer, runId: string, { views, sendQueue, onFault }: ChannelOptions): void {
  const { signal, leave, end } = endingOf(peer);
  let announced: Announced | null = null;

  const push = (messages: readonly ChannelMessage[]): void => {
    if (messages.length > 0 && !sendQueue.send(peer, messages)) leave();
  };
  const onState = (run: RunState): void => {
    const announcement = announcedOnce(run, announced ?? NOTHING_ANNOUNCED);
    const greeting = announced === null ? [connectedMessage(runId, run.phase.status)] : [];
    announced = announcement.announced;
    push([...greeting, ...announcement.messages]);
    if (announcement.isLast) end(CLOSE_NORMAL);
  };

  // The corruption has been logged, once for all sockets.
  const onCorrupt = (): void => end(CLOSE_FAULT);
  views.watch(runId, { onState, onCorrupt: onCorrupt, signal }).then(
    (isKnown) => {
      if (isKnown) return;
      push([unknownRunMessage(runId)]);
      end(CLOSE_NORMAL);
    },
    (error: unknown) => {
      const code = closeCodeOf(error);
      if (code === CLOSE_FAULT) onFault(error);
      end(code);
    },
  );
}

/** Without a reason each signal would make an error of its own. */
const OVER = 'the channel is over';

/** How a channel ends, or learns that its client has gone. */
interface Ending {
  /** Aborts when nothing more is to be sent. */
  readonly signal: AbortSignal;
  /** Sends nothing more on a socket that is closed elsewhere. */
  leave(): void;
  end(code: number): void;
}

function endingOf({ socket }: Peer): Ending {
  const over = new AbortController();
  const leave = (): void => over.abort(OVER);
  socket.on('close', leave);
  return {
    signal: over.signal,
    leave,
    end(code) {
      socket.close(code);
      leave();
    },
  };
}

/** Announcements of a state, by what its recipients had been sent before. */
const announcements = new WeakMap<RunState, { readonly after: Announced; readonly announcement: Announcement }[]>();

/** Like `announce`, but made once for all recipients that had been sent the same before, so that it is encoded once. */
function announcedOnce(run: RunState, after: Announced): Announcement {
  const made = announcements.get(run) ?? [];
  announcements.set(run, made);
  const known = made.find((each) => each.after.node === after.node && each.after.pause === after.pause);
  if (known !== undefined) return known.announcement;
  const announcement = announce(run, after);
  made.push({ after, announcement });
  return announcement;
}

// The rich stream: sends one connection every event of a run, and drafts while they are written.

/** Unsent bytes above which history is read no further until the client has taken what was sent. */
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
  /** Revision of the last event that the client knows already. */
  readonly after: number;
}

/** Serves the rich stream of a run on an open socket. */
export function serveRichChannel(peer: Peer, target: RichTarget, options: RichChannelOptions): void {
  const { socket } = peer;
  const { sendQueue } = options;
  const { signal, leave, end } = endingOf(peer);
  /** Sends messages. The promise, if there is one, resolves once the client may be sent more; it holds no message. */
  const push = (messages: readonly Message[]): void | Promise<void> => {
    if (signal.aborted) return;
    const { sent, onSent } = sending();
    if (!sendQueue.send(peer, messages, onSent)) leave();
    if (messages.some(isEnd)) end(CLOSE_NORMAL);
    return socket.bufferedAmount > PAUSE_BYTES ? sent : undefined;
  };
  sendRun(target, { ...options, push, signal }).then(
    (isKnown) => {
      if (isKnown) return;
      void push([unknownRunMessage(target.runId)]);
      end(CLOSE_NORMAL);
    },
    (error: unknown) => {
      const code = closeCodeOf(error);
      // A socket that is closing, because the client has gone or the service stops, is no fault.
      if (code === CLOSE_FAULT && socket.readyState === socket.OPEN) options.onFault(error);
      end(code);
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
  readonly signal: AbortSignal;
}

/** Sends a run to its end; false when there is none. Reads all events, as a node's end needs the data of its start. */
async function sendRun(
  { runId, after }: RichTarget,
  { feed, queries, tokens, push, signal }: RichChannelDeps,
): Promise<boolean> {
  const run = await queries.find(runId);
  if (run === null) return false;
  const translator = new MessageTranslator(runId, after);
  // Sent with the first event, so that a run whose record cannot be read gets no message.
  let greeting: readonly ChannelMessage[] = [connectedMessage(runId, run.status)];
  const stopListening = tokens.subscribe(runId, (token) => void push(translator.token(token)));
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

/** Most characters of tokens held back until their node's start has been sent; further tokens are dropped. */
const MAX_WAITING_CHARS = 64 * 1024;

type Message = ChannelMessage | RichMessage;

interface Start {
  readonly iteration: number | null;
  readonly attempt: number;
}

class MessageTranslator {
  readonly #runId: string;
  readonly #after: number;
  /** The running nodes, by their step. */
  readonly #starts = new Map<number, Start>();
  #waiting: readonly Token[] = [];

  /** @param after revision of the last event that the client knows already */
  constructor(runId: string, after: number) {
    this.#runId = runId;
    this.#after = after;
  }

  /** The messages for an event; none for one that the client knows, except the run's end, which every client is sent. */
  event(event: RunEvent): readonly Message[] {
    const derived = this.#beside(event);
    if (event.seq <= this.#after) return derived.filter((message) => isEnd(message) || message.event === 'token');
    return [eventMessage(event, this.#runId), ...derived];
  }

  /** The messages for a token, which is sent after its node's start. */
  token(token: Token): readonly Message[] {
    if (this.#isStarted(token)) return [tokenMessage(token, this.#runId)];
    const chars = this.#waiting.reduce((sum, { text }) => sum + text.length, token.text.length);
    if (chars <= MAX_WAITING_CHARS) this.#waiting = [...this.#waiting, token];
    return [];
  }

  #beside({ type, data }: RunEvent): readonly Message[] {
    const run = { run_id: this.#runId };
    switch (type) {
      case 'NodeStarted': {
        const iteration = data.iteration === 0 ? null : data.iteration;
        this.#starts.set(data.step, { iteration, attempt: data.attempt });
        return [{ event: 'node_start', ...run, node: data.node, iteration, score: null }, ...this.#takeWaiting()];
      }
      case 'NodeCompleted': {
        const { step, node, output } = data;
        const iteration = this.#starts.get(step)?.iteration ?? null;
        this.#starts.delete(step);
        this.#waiting = this.#waiting.filter((token) => token.step !== step);
        return [{ event: 'node_complete', ...run, node, iteration, score: 'score' in output ? output.score : null }];
      }
      case 'RunCompleted':
        return [completeMessage(data, this.#runId)];
      case 'RunFailed':
        return [{ event: 'run_failed', ...run, error: data.error }];
      case 'RunRequested':
      case 'RunClaimed':
      case 'RunReleased':
      case 'RunStarted':
      case 'RunResumed':
      case 'ToolCalled':
      case 'NodeFailed':
      case 'RunPaused':
      case 'VoteCast':
      case 'PauseEscalated':
      case 'GateDecided':
        return [];
    }
  }

  /** Removes and returns the tokens whose node has started by now. */
  #takeWaiting(): readonly Message[] {
    const due = this.#waiting.filter((token) => this.#isStarted(token));
    this.#waiting = this.#waiting.filter((token) => !this.#isStarted(token));
    return due.map((token) => tokenMessage(token, this.#runId));
  }

  #isStarted({ step, attempt }: Token): boolean {
    return (this.#starts.get(step)?.attempt ?? 0) >= attempt;
  }
}

// Messages that may hold a draft, or part of one, are made once, so that they are encoded once for all recipients.

const eventMessage = madeOnce(({ seq, id, type, at, data, hash }: RunEvent, runId: string): Message => {
  return { event: 'run_event', run_id: runId, seq, id, type, at, data: { ...data }, hash };
});

const completeMessage = madeOnce((data: RunCompletedData, runId: string): Message => {
  const { finalDraft, criticScore, iterationCount } = data;
  const result = { final_draft: finalDraft, critic_score: criticScore, iteration_count: iterationCount };
  return { event: 'run_complete', run_id: runId, ...result };
});

const tokenMessage = madeOnce(({ node, step, attempt, turn, offset, text }: Token, runId: string): Message => {
  return { event: 'token', run_id: runId, node, step, attempt, turn, offset, text };
});

/** The same function, which gives what it gave before for the same object of the same run. */
function madeOnce<From extends object>(make: (from: From, runId: string) => Message): typeof make {
  const made = new WeakMap<From, Message>();
  return (from, runId) => {
    const message = made.get(from) ?? make(from, runId);
    made.set(from, message);
    return message;
  };
}

/** Whether nothing follows: the service closes the connection. */
function isEnd({ event }: Message): boolean {
  return event === 'run_complete' || event === 'run_failed';
}
