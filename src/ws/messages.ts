/** The messages of the default channel, as a pure function of the run and of earlier messages, and the close codes. */
import type { ChannelMessage, GateAction } from '../generated/schemas.js';
import { problemOf } from '../api/problems.js';
import { ServiceStopping } from '../errors.js';
import { RunErased } from '../run/errors.js';
import type { RunState } from '../run/state.js';
import { isFinished, iterationShown, openPauseOf } from '../run/state.js';

/** The node and the pause that one connection has last been sent. */
export interface Announced {
  readonly node: string | null;
  /** The pause that was announced, until its end is announced. */
  readonly pause: number | null;
}

export const NOTHING_ANNOUNCED: Announced = { node: null, pause: null };

export interface Announcement {
  readonly messages: readonly ChannelMessage[];
  readonly announced: Announced;
  /** Whether these are the last messages, after which the service closes the connection. */
  readonly isLast: boolean;
}

export function connectedMessage(runId: string, status: RunState['phase']['status']): ChannelMessage {
  return { event: 'connected', run_id: runId, status };
}

export function unknownRunMessage(runId: string): ChannelMessage {
  return { event: 'error', message: `Run ${runId} not found` };
}

/** The messages for the new state of a run. The active node comes before the status. */
export function announce(run: RunState, announced: Announced): Announcement {
  const messages: ChannelMessage[] = [];
  const { activeNode } = run.progress;
  if (activeNode !== null && activeNode !== announced.node) {
    messages.push({ event: 'node_active', run_id: run.runId, node: activeNode, iteration: iterationShown(run) });
  }
  const { message, pause } = statusMessage(run, announced.pause);
  if (message !== null) messages.push(message);
  return {
    messages,
    announced: { node: activeNode, pause },
    isLast: isFinished(run),
  };
}

interface StatusMessage {
  readonly message: ChannelMessage | null;
  readonly pause: number | null;
}

function statusMessage(run: RunState, pause: number | null): StatusMessage {
  const { runId, phase } = run;
  switch (phase.status) {
    case 'pending':
      return { message: null, pause };
    case 'running':
      return { message: pause === null ? null : resumedMessage(runId, phase.resumedBy), pause: null };
    case 'paused':
      return pausedMessage(run, pause);
    case 'completed':
      return {
        message: {
          event: 'run_complete',
          run_id: runId,
          final_draft: phase.finalDraft,
          critic_score: run.progress.shown.score,
          iteration_count: iterationShown(run),
        },
        pause: null,
      };
    case 'failed':
      return { message: { event: 'run_failed', run_id: runId, error: phase.failure.error }, pause: null };
    default:
      return phase satisfies never;
  }
}

function resumedMessage(runId: string, resumedBy: GateAction | null): ChannelMessage {
  return { event: 'run_resumed', run_id: runId, action: resumedBy === 'modify' ? 'modify' : 'approve' };
}

function pausedMessage(run: RunState, announced: number | null): StatusMessage {
  const open = openPauseOf(run);
  if (open === null || open.number === announced) return { message: null, pause: announced };
  return {
    message: {
      event: 'run_paused',
      run_id: run.runId,
      next_nodes: [...open.nextNodes],
      ...(open.reason === 'budget' && { pause_reason: open.reason }),
      current_draft: run.progress.shown.draft,
      critic_score: run.progress.shown.score,
      iteration_count: iterationShown(run),
    },
    pause: open.number,
  };
}

// The close codes, with their reasons: those of RFC 6455 section 7.4.1 and its registry, and private ones.

/** The run has ended or does not exist, so no message follows. */
export const CLOSE_NORMAL = 1000;
/** The service stops; connect again, here or to another instance. */
export const CLOSE_RESTART = 1012;
/** The run's record was found corrupt, or the service has a fault. */
export const CLOSE_FAULT = 1011;
/** The run cannot be read at the moment, because the log cannot be reached; connect again later. */
export const CLOSE_LATER = 1013;
/** The client does not read fast enough. */
export const CLOSE_TOO_SLOW = 4408;
/** The key by which the socket was opened was revoked or has expired, or its session has ended. */
export const CLOSE_UNAUTHORIZED = 4401;

/** The code to close a socket with after an error: 1013 where the REST edge answers 503. */
export function closeCodeOf(error: unknown): number {
  if (error instanceof ServiceStopping) return CLOSE_RESTART;
  if (error instanceof RunErased) return CLOSE_NORMAL;
  return problemOf(error, '').status === 503 ? CLOSE_LATER : CLOSE_FAULT;
}
