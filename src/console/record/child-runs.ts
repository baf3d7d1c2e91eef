/** The runs that the councils in a run have started, up to one of its events. */
import type { ChildEndedData, ChildStartedData } from '../../generated/schemas.js';
import type { FrontierNode } from '../../run/state.js';
import type { RunRecord } from './run-record.js';

/** The runs of one step of a council. */
export interface CouncilStep {
  readonly step: number;
  readonly node: string;
  /** How many runs the step has in all, as far as it is known. */
  readonly count: number;
  /** In the order of the items. */
  readonly runs: readonly ChildRun[];
  /** Whether the step waits for some of its runs. */
  readonly isOpen: boolean;
}

export interface ChildRun extends Pick<ChildStartedData, 'index' | 'title'> {
  readonly id: string;
  /** Its end, or null before. */
  readonly end: ChildEnd | null;
}

/** Without a cost for a run that the parent of a fork has paid. */
type ChildEnd = Pick<ChildEndedData, 'status' | 'output' | 'error'> & Partial<Pick<ChildEndedData, 'costUsd'>>;

/** The steps of councils up to and including an event, the earliest first. */
export function councilStepsAt(record: RunRecord, seq: number): readonly CouncilStep[] {
  const waiting = frontierAt(record, seq).filter(({ active }) => active);
  const found = inheritedIn(record);
  for (const { type, data } of record.events.slice(0, seq + 1)) {
    if (type === 'ChildStarted') {
      const { index, title, child: id } = data;
      put(found, data, { id, index, ...(title !== undefined && { title }), end: null });
    } else if (type === 'ChildEnded') {
      const run = found.get(data.step)?.runs.get(data.index);
      if (run !== undefined) put(found, data, { ...run, end: data });
    }
  }
  return [...found].map(([step, { node, count, runs }]) => ({
    step,
    node,
    count: Math.max(count, runs.size),
    runs: [...runs.values()].sort((one, other) => one.index - other.index),
    isOpen: waiting.some((each) => each.step === step),
  }));
}

/** Those that a fork continues with. */
function inheritedIn(record: RunRecord): Map<number, CouncilStart> {
  const found = new Map<number, CouncilStart>();
  for (const { step, node, children } of frontierAt(record, 0))
    for (const { runId: id, items, ...run } of children) put(found, { step, node, items }, { id, ...run });
  return found;
}

function frontierAt(record: RunRecord, seq: number): readonly FrontierNode[] {
  return record.stateAt(seq)?.progress.frontier ?? [];
}

interface CouncilStart extends Pick<CouncilStep, 'node' | 'count'> {
  readonly runs: Map<number, ChildRun>;
}

type At = Pick<ChildStartedData, 'step' | 'node'> & { readonly items?: number | undefined };

function put(found: Map<number, CouncilStart>, { step, node, items = 1 }: At, run: ChildRun): void {
  const { count = items, runs = new Map<number, ChildRun>() } = found.get(step) ?? {};
  found.set(step, { node, count, runs: runs.set(run.index, run) });
}
