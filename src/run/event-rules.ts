/** Which event may follow in which state of a run. The chart (machine.ts) is compiled from these rules. */
import type { NodeStartedData, RunCompletedData } from '../generated/schemas.js';
import { isDecisionAllowed, isEscalationAllowed, isVoteAllowed } from './approvals.js';
import type { RunEvent } from './events.js';
import { isOutstanding } from './fork-snapshot.js';
import { branchAtEnd } from './frontier.js';
import type { RunState } from './state.js';
import { isFrontierDone } from './state.js';

/** Where in the chart an event may occur. A paused run waits or is decided; each node is idle or active. */
export type Position = 'pending' | 'running' | 'paused' | 'waiting' | 'decided' | 'idle' | 'active';

/** The state after an event, or null if it stays the same. */
export type Next = 'running' | 'paused' | 'decided' | 'completed' | 'failed' | 'idle' | 'active' | null;

/**
 * Where each event may occur, and the state after it: the whole chart except its nodes. Add a new event here, and its
 * further requirements to `mayFollow`.
 */
export const EVENTS: Readonly<Record<RunEvent['type'], Readonly<Partial<Record<Position, Next>>>>> = {
  RunRequested: {},
  RunClaimed: { pending: null, running: null, decided: null },
  RunReleased: { pending: null, running: null, paused: null },
  RunStarted: { pending: 'running' },
  RunPaused: { running: 'paused' },
  VoteCast: { waiting: null },
  PauseEscalated: { waiting: null },
  GateDecided: { waiting: 'decided' },
  RunResumed: { decided: 'running' },
  RunCompleted: { running: 'completed' },
  RunFailed: { pending: 'failed', running: 'failed', paused: 'failed' },
  NodeStarted: { idle: 'active', active: 'active' },
  ToolCalled: { active: null },
  NodeCompleted: { active: 'idle' },
  NodeFailed: { active: 'idle' },
};

/** Events that require more of the run than the chart's state; a drawn chart marks them. */
export const GUARDED: ReadonlySet<string> = new Set<RunEvent['type']>([
  'NodeStarted',
  'RunPaused',
  'VoteCast',
  'PauseEscalated',
  'GateDecided',
  'RunCompleted',
]);

/** The guard: whether the rest of the run's state allows an event that the chart's state allows. */
export function mayFollow(run: RunState, event: RunEvent): boolean {
  switch (event.type) {
    case 'NodeStarted':
      return isAwaited(run, event.data);
    case 'RunPaused':
      return isFrontierDone(run);
    case 'VoteCast':
      return isVoteAllowed(run, event.data);
    case 'PauseEscalated':
      return isEscalationAllowed(run, event.at, event.data);
    case 'GateDecided':
      return isDecisionAllowed(run, event.at, event.data);
    case 'RunCompleted':
      return isResult(run, event.data);
    case 'RunRequested':
    case 'RunClaimed':
    case 'RunReleased':
    case 'RunStarted':
    case 'RunResumed':
    case 'ToolCalled':
    case 'NodeCompleted':
    case 'NodeFailed':
    case 'RunFailed':
      return true;
  }
}

/** Whether a start is expected: of a node with an arrival, or another attempt of an outstanding step. */
function isAwaited(run: RunState, { node, step }: NodeStartedData): boolean {
  const begun = run.progress.frontier.find((each) => each.step === step);
  if (begun !== undefined) return begun.node === node && isOutstanding(run, begun);
  return step === run.progress.steps + 1 && run.progress.arrivals.some((each) => each.node === node);
}

/** Whether all branches have ended and their join is the recorded result. */
function isResult(run: RunState, { finalDraft, criticScore }: RunCompletedData): boolean {
  if (!isFrontierDone(run) || run.progress.arrivals.length > 0) return false;
  const { draft, score } = branchAtEnd(run);
  return finalDraft === draft && criticScore === score;
}
