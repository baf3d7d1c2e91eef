/** Two runs side by side: their executions by node and by which time it was that node's turn. */
import { canonical } from '../../eventsourcing/canonical-json.js';
import type { Course, Step } from './course.js';
import type { Execution } from './executions.js';
import { asItRan } from './executions.js';
import type { RunRecord } from './run-record.js';

/** How a pair of executions compares; `left` and `right`: only that run has it. */
export type Likeness = 'same' | 'differs' | 'left' | 'right';

/** An execution of each run, or of one alone. */
export interface ComparedPair {
  readonly node: string;
  /** Which time the node ran, from 1. */
  readonly turn: number;
  readonly left: Execution | null;
  readonly right: Execution | null;
  readonly likeness: Likeness;
}

export interface ComparedRuns {
  /** In the order they ran; what only one run has stands where it ran there. */
  readonly pairs: readonly ComparedPair[];
  /** Where one was forked from the other: at which event of which side; null: neither was. */
  readonly fork: { readonly parent: 'left' | 'right'; readonly at: number } | null;
}

/** The sides of a comparison, each up to and including an event. */
export interface ComparedSide {
  readonly record: RunRecord;
  readonly seq: number;
}

/** Compares two runs; null while one of them has no event. @param now see {@link asItRan} */
export function compareRuns(left: ComparedSide, right: ComparedSide, now: string): ComparedRuns | null {
  const [one, other] = [sideOf(left, now), sideOf(right, now)];
  if (one === null || other === null) return null;
  const fork = forkOf(one, other);
  const [a, b] = inheriting(one, other, fork);
  return { pairs: align(keyed(a), keyed(b)), fork };
}

interface Side {
  readonly course: Course;
  readonly executions: readonly Execution[];
  readonly runId: string;
}

function sideOf({ record, seq }: ComparedSide, now: string): Side | null {
  const course = record.courseAt(seq);
  const ran = asItRan(record, seq, now);
  const state = record.stateAt(seq);
  if (course === null || ran === null || state === null) return null;
  return { course, executions: ran.executions, runId: state.runId };
}

function forkOf(left: Side, right: Side): ComparedRuns['fork'] {
  const [ofLeft, ofRight] = [left.course.parent, right.course.parent];
  if (ofRight?.runId === left.runId) return { parent: 'left', at: ofRight.at };
  if (ofLeft?.runId === right.runId) return { parent: 'right', at: ofLeft.at };
  return null;
}

/** A fork's executions of before it are its parent's own: they are alike by what they are. */
function inheriting(left: Side, right: Side, fork: ComparedRuns['fork']): readonly [Side, Side] {
  if (fork === null) return [left, right];
  const [parent, child] = fork.parent === 'left' ? [left, right] : [right, left];
  const own = child.executions.filter(({ isInherited }) => !isInherited);
  const begun = new Set(own.map(({ step }) => step));
  const taken = parent.executions.filter(
    ({ step, output }) => step <= child.course.stepsBefore && !begun.has(step) && output !== null,
  );
  const whole = { ...child, executions: [...taken, ...own].sort((a, b) => a.step - b.step) };
  return fork.parent === 'left' ? [left, whole] : [whole, right];
}

interface Keyed {
  readonly node: string;
  readonly turn: number;
  readonly key: string;
  readonly execution: Execution;
}

function keyed({ executions }: Side): readonly Keyed[] {
  const turns = new Map<string, number>();
  return executions.map((execution) => {
    const { node } = execution;
    const turn = (turns.get(node) ?? 0) + 1;
    turns.set(node, turn);
    return { node, turn, key: `${turn} ${node}`, execution };
  });
}

/** In the order of the left run; what only the right one has stands behind what it followed there. */
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
  const { node = '', turn = 0 } = left ?? right ?? {};
  const [a, b] = [left?.execution ?? null, right?.execution ?? null];
  return { node, turn, left: a, right: b, likeness: likenessOf(a, b) };
}

function likenessOf(left: Execution | null, right: Execution | null): Likeness {
  if (left === null || right === null) return left === null ? 'right' : 'left';
  return isSame(left, right) ? 'same' : 'differs';
}

/** Whether two executions came to the same result and went the same way. */
function isSame(left: Step, right: Step): boolean {
  if (left.output === null || right.output === null) return false;
  const wayOf = ({ routes }: Step) => routes.at(-1)?.next ?? [];
  return (
    canonical(left.output.value) === canonical(right.output.value) && canonical(wayOf(left)) === canonical(wayOf(right))
  );
}
