/** The names of a run's events for people; programs get the types. */
import type { RunEvent } from '../../../client/run-events.js';

const NAMES: Readonly<Record<RunEvent['type'], string>> = {
  RunRequested: 'run requested',
  RunClaimed: 'run claimed by an instance',
  RunReleased: 'run released by its instance',
  RunStarted: 'run started',
  RunResumed: 'run resumed',
  NodeStarted: 'member started',
  CallReserved: 'budget reserved for a call',
  ToolCalled: 'tool called',
  ChildStarted: 'run of a council started',
  ChildEnded: 'run of a council ended',
  NodeCompleted: 'member finished',
  NodeFailed: 'member failed',
  QuorumReached: 'enough members answered',
  PanelClosed: 'panel closed',
  RunPaused: 'run waits',
  VoteCast: 'vote cast',
  PauseEscalated: 'deadline of a pause passed',
  GateDecided: 'decision made',
  RunCompleted: 'run completed',
  RunFailed: 'run failed',
};

/** A type as words, such as `run waits`. An unknown type stays. */
export function eventName(type: string): string {
  return Object.entries(NAMES).find(([known]) => known === type)?.[1] ?? type;
}
