/** Compares two runs: pairs the n-th execution of a node in one run with the n-th in the other. */
import { canonical } from '../../eventsourcing/canonical-json.js';
import type { RunHistory } from '../../run/history/history.js';
import type { Execution, PanelExecution } from './executions.js';
import { traceAt, rankingOf } from './executions.js';
import type { RunRecord } from './run-record.js';

/** The result for a pair of executions; `left` or `right`: only that run has it. */
export type Similarity = 'same' | 'differs' | 'left' | 'right';

/** An execution of each run, or of one alone. */
export interface ComparedPair {
  readonly node: string;
  /** Counts the node's executions from 1. */
  readonly occurrence: number;
  readonly left: Execution | null;
  readonly right: Execution | null;
  readonly similarity: Similarity;
}

export interface ComparedRuns {
  /** In the order of the left run; executions of the right run alone follow their predecessor. */
  readonly pairs: readonly ComparedPair[];
  /** The event of the parent that the other run was forked at, or null if neither is a fork of the other. */
  readonly fork: { readonly parent: 'left' | 'right'; readonly at: number } | null;
}

/** The sides of a comparison, each up to and including an event. */
export interface ComparedSide {
  readonly record: RunRecord;
  readonly seq: number;
}

/** The comparison, or null while one of the runs has no event. @param now see {@link traceAt} */
export function compareRuns(left: ComparedSide, right: ComparedSide, now: string): ComparedRuns | null {
  const [one, other] = [sideOf(left, now), sideOf(right, now)];
  if (one === null || other === null) return null;
  const fork = forkOf(one, other);
  const [a, b] = withInherited(one, other, fork);
  return { pairs: align(keyed(a), keyed(b)), fork };
}

interface Side {
  readonly history: RunHistory;
  readonly executions: readonly Execution[];
  readonly runId: string;
}

function sideOf({ record, seq }: ComparedSide, now: string): Side | null {
  const history = record.historyAt(seq);
  const trace = traceAt(record, seq, now);
  const state = record.stateAt(seq);
  if (history === null || trace === null || state === null) return null;
  return { history, executions: trace.executions, runId: state.runId };
}

function forkOf(left: Side, right: Side): ComparedRuns['fork'] {
  const [ofLeft, ofRight] = [left.history.parent, right.history.parent];
  if (ofRight?.runId === left.runId) return { parent: 'left', at: ofRight.at };
  if (ofLeft?.runId === right.runId) return { parent: 'right', at: ofLeft.at };
  return null;
}

/** Gives a fork the executions of its parent from before the fork. */
function withInherited(left: Side, right: Side, fork: ComparedRuns['fork']): readonly [Side, Side] {
  if (fork === null) return [left, right];
  const [parent, child] = fork.parent === 'left' ? [left, right] : [right, left];
  const own = child.executions.filter(({ isInherited }) => !isInherited);
  const ownSteps = new Set(own.map(({ step }) => step));
  const inherited = parent.executions.filter(
    (each) => each.step <= child.history.stepsBefore && !ownSteps.has(each.step) && resultOf(each) !== null,
  );
  const complete = { ...child, executions: [...inherited, ...own].sort((a, b) => a.step - b.step) };
  return fork.parent === 'left' ? [left, complete] : [complete, right];
}

interface Keyed {
  readonly node: string;
  readonly occurrence: number;
  readonly key: string;
  readonly execution: Execution;
}

function keyed({ executions }: Side): readonly Keyed[] {
  const counts = new Map<string, number>();
  return executions.map((execution) => {
    const { node } = execution;
    const occurrence = (counts.get(node) ?? 0) + 1;
    counts.set(node, occurrence);
    return { node, occurrence, key: `${occurrence} ${node}`, execution };
  });
}

function align(left: readonly Keyed[], right: readonly Keyed[]): readonly ComparedPair[] {
  const rights = new Map(right.map((each, at) => [each.key, at]));
  const lefts = new Set(left.map(({ key }) => key));
  const aligned: ComparedPair[] = [];
  let next = 0;
  const onlyRight = (until: number): void => {
    for (const each of right.slice(next, until)) if (!lefts.has(each.key)) aligned.push(pairOf(null, each));
    next = Math.max(next, until);
  };
  for (const each of left) {
    const partner = rights.get(each.key);
    if (partner !== undefined) onlyRight(partner);
    aligned.push(pairOf(each, partner === undefined ? null : (right[partner] ?? null)));
  }
  onlyRight(right.length);
  return aligned;
}

function pairOf(left: Keyed | null, right: Keyed | null): ComparedPair {
  const { node = '', occurrence = 0 } = left ?? right ?? {};
  const [a, b] = [left?.execution ?? null, right?.execution ?? null];
  return { node, occurrence, left: a, right: b, similarity: similarityOf(a, b) };
}

function similarityOf(left: Execution | null, right: Execution | null): Similarity {
  if (left === null || right === null) return left === null ? 'right' : 'left';
  return isSame(left, right) ? 'same' : 'differs';
}

/** Whether two executions have the same result and route. */
function isSame(left: Execution, right: Execution): boolean {
  const [one, other] = [resultOf(left), resultOf(right)];
  if (one === null || other === null) return false;
  const routeOf = ({ routes }: Execution) => routes.at(-1)?.next ?? [];
  return canonical(one) === canonical(other) && canonical(routeOf(left)) === canonical(routeOf(right));
}

/** What an execution has given, or null before. */
function resultOf({ output, panel }: Execution): unknown {
  if (panel === null) return output?.value ?? null;
  return panel.closed === null ? null : panelResultOf(panel);
}

/** Letters differ between runs, so a ranking counts by member. */
function panelResultOf({ members }: PanelExecution): unknown {
  return members.map((each) => ({ member: each.member, gave: rankingOf(each) ?? each.output?.value ?? null }));
}
