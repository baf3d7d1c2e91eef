/** The default channel of a run: pushes its state to a socket as it becomes durable, until the run has ended. */
import type { ChannelMessage } from '../generated/schemas.js';
import { RunCorrupt, RunUnknown } from '../run/errors.js';
import type { RunFeed } from '../run/runs/feed.js';
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
import type { SendQueue, Peer } from './send-queue.js';

export interface ChannelOptions {
  readonly feed: Pick<RunFeed, 'follow'>;
  readonly sendQueue: Pick<SendQueue, 'send'>;
  readonly onFault: (error: unknown) => void;
}

/** Serves a run's default channel on an open socket. */
export function serveChannel(peer: Peer, runId: string, { feed, sendQueue, onFault }: ChannelOptions): void {
  const { signal, abort, close } = openEnding(peer);
  let announced: Announced | null = null;

  const push = (messages: readonly ChannelMessage[]): void => {
    if (messages.length > 0 && !sendQueue.send(peer, messages)) abort();
  };
  const onState = (run: RunState): void => {
    const announcement = announceOnce(run, announced ?? NOTHING_ANNOUNCED);
    const greeting = announced === null ? [connectedMessage(runId, run.phase.status)] : [];
    announced = announcement.announced;
    push([...greeting, ...announcement.messages]);
    if (announcement.isLast) close(CLOSE_NORMAL);
  };
  feed.follow(runId, { from: 'now', onState, signal }).catch((error: unknown) => {
    const isUnknown = error instanceof RunUnknown;
    if (isUnknown) push([unknownRunMessage(runId)]);
    const code = isUnknown ? CLOSE_NORMAL : closeCodeOf(error);
    // A run that is found corrupt while clients follow it is logged once for all of them.
    const isReported = announced !== null && error instanceof RunCorrupt;
    if (code === CLOSE_FAULT && !isReported) onFault(error);
    close(code);
  });
}

/** The abort reason; without one, each signal would create an error. */
const CHANNEL_CLOSED = 'the channel is closed';

/** The end of a channel, by the service or by its client. */
interface Ending {
  /** Aborts when there is nothing more to send. */
  readonly signal: AbortSignal;
  /** Stops sending; the caller closes the socket. */
  readonly abort: () => void;
  readonly close: (code: number) => void;
}

export function openEnding({ socket }: Peer): Ending {
  const controller = new AbortController();
  const abort = (): void => controller.abort(CHANNEL_CLOSED);
  socket.on('close', abort);
  const close = (code: number): void => {
    socket.close(code);
    abort();
  };
  return { signal: controller.signal, abort, close };
}

/** The announcements of a state. Each lists the messages for recipients that had received the same before. */
const announcements = new WeakMap<RunState, { readonly after: Announced; readonly announcement: Announcement }[]>();

/** Like `announce`, but equal recipients share the messages, so that the service encodes them once. */
function announceOnce(run: RunState, after: Announced): Announcement {
  const made = announcements.get(run) ?? [];
  announcements.set(run, made);
  const known = made.find((each) => each.after.node === after.node && each.after.pause === after.pause);
  if (known !== undefined) return known.announcement;
  const announcement = announce(run, after);
  made.push({ after, announcement });
  return announcement;
}
