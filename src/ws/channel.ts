/** The default channel: pushes the state of a run to one connection as it becomes durable, until the run has ended. */
import type { WebSocket } from 'ws';
import type { ChannelMessage } from '../generated/schemas.js';
import type { RunViews } from '../projections/run-views.js';
import type { RunState } from '../run/state.js';
import { CLOSE_FAULT, CLOSE_NORMAL, CLOSE_TOO_SLOW } from './close-codes.js';
import { sendMessage } from './close-codes.js';
import type { Announced } from './messages.js';
import { announce, connectedMessage, NOTHING_ANNOUNCED, unknownRunMessage } from './messages.js';

export interface ChannelOptions {
  readonly views: Pick<RunViews, 'watch'>;
  readonly onFault: (error: unknown) => void;
}

/** Serves a run's channel on an open socket. */
export function serveChannel(socket: WebSocket, runId: string, { views, onFault }: ChannelOptions): void {
  const closed = new AbortController();
  let announced: Announced | null = null;

  const push = (messages: readonly ChannelMessage[]): void => {
    for (const message of messages) {
      if (!sendMessage(socket, message)) return end(CLOSE_TOO_SLOW, 'too slow');
    }
  };
  const end = (code: number, reason?: string): void => {
    socket.close(code, reason);
    closed.abort();
  };
  const onState = (run: RunState): void => {
    if (announced === null) push([connectedMessage(run)]);
    const announcement = announce(run, announced ?? NOTHING_ANNOUNCED);
    announced = announcement.announced;
    push(announcement.messages);
    if (announcement.isLast) end(CLOSE_NORMAL);
  };

  socket.on('close', () => closed.abort());
  // The corruption has been logged, once for all sockets.
  const onDamaged = (): void => end(CLOSE_FAULT);
  views.watch(runId, { onState, onCorrupt: onDamaged, signal: closed.signal }).then(
    (isKnown) => {
      if (isKnown) return;
      push([unknownRunMessage(runId)]);
      end(CLOSE_NORMAL);
    },
    (error: unknown) => {
      onFault(error);
      end(CLOSE_FAULT);
    },
  );
}
