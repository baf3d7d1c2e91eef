/** The lanes of a timeline: the periods of each node and of its members, and the pauses. */
import { lengthText } from './durations.js';
import type { Attempt, EventRef, RunHistory, Step } from '../../run/history/history.js';
import { allAttempts } from '../../run/history/history.js';

/** Why a run waits. `idle`: the record shows no reason. */
export type Waiting = 'human' | 'back-off' | 'outage' | 'no-owner' | 'room' | 'idle';

/** A period in a lane. */
export interface Segment {
  readonly kind: 'work' | 'back-off' | 'outage' | 'lost' | 'human';
  readonly x0: number;
  readonly x1: number;
  /** It has not ended. */
  readonly isOpen: boolean;
  /** How it ended, or null if it is open or has no outcome. */
  readonly result: 'completed' | 'failed' | 'lost' | 'discarded' | 'approve' | 'reject' | 'modify' | null;
  /** Number of the step, or of the pause in the human's lane. */
  readonly number: number;
  /** Or null of a pause, panel, rank or jury. */
  readonly attempt: number | null;
  /** The member whose attempt it is, or null. */
  readonly member: string | null;
  /** Its first event. */
  readonly seq: number;
  /** Its duration as text. */
  readonly label: string;
}

/** The periods of a node, or the pauses of the run if `node` is null. */
export interface Lane {
  readonly node: string | null;
  readonly label: string;
  readonly segments: readonly Segment[];
  /** The lanes of its members, or empty. */
  readonly members: readonly Lane[];
}

/** A history with the positions in time of its events. */
export interface Scope {
  readonly history: RunHistory;
  readonly fromMs: number;
  readonly toMs: number;
  /** The time of an event; the end of the timeline for null. */
  readonly timeOf: (mark: Pick<EventRef, 'seq'> | null) => number;
}

/** A period with its reason. */
export interface Stretch {
  readonly kind: 'work' | Waiting;
  readonly fromMs: number;
  readonly toMs: number;
}

/** The lane of the pauses, if there were any. */
export function humanLane({ history, timeOf }: Scope, place: (ms: number) => number): readonly Lane[] {
  if (history.pauses.length === 0) return [];
  const segments = history.pauses.map(({ number, paused, decision }): Segment => {
    const end = decision ?? history.end;
    const [from, to] = [timeOf(paused), timeOf(end)];
    return {
      kind: 'human',
      number,
      attempt: null,
      member: null,
      seq: paused.seq,
      x0: place(from),
      x1: place(to),
      isOpen: end === null,
      result: decision?.action ?? null,
      label: lengthText(to - from),
    };
  });
  return [{ node: null, label: 'Human', segments, members: [] }];
}

interface Placing {
  readonly scope: Scope;
  readonly place: (ms: number) => number;
}

/** The lanes of nodes that have started, in the order of the graph. */
export function nodeLanes(scope: Scope, place: (ms: number) => number): readonly Lane[] {
  const { history } = scope;
  return history.plan.graph.nodes.flatMap(({ id, label }) => {
    const own = history.steps.filter(({ node }) => node === id);
    const segments = own.flatMap((each) => segmentsOfStep(each, { scope, place }));
    return segments.length === 0 ? [] : [{ node: id, label, segments, members: memberLanes(own, { scope, place }) }];
  });
}

function segmentsOfStep(each: Step, { scope, place }: Placing): readonly Segment[] {
  const { step, attempts, panel } = each;
  if (panel === null) return attempts.flatMap((attempt) => segmentsOf(attempt, { step, member: null, scope, place }));
  const starts = allAttempts(each).map(({ started }) => started);
  const [first] = starts;
  if (first === undefined) return [];
  const { end } = scope.history;
  const from = Math.min(...starts.map(scope.timeOf));
  const to = scope.timeOf(panel.closed ?? end);
  const hasFailed = panel.closed === null && end?.how === 'failed' && end.failure.node === each.node;
  return [
    {
      kind: 'work',
      number: step,
      attempt: null,
      member: null,
      seq: first.seq,
      x0: place(from),
      x1: place(to),
      isOpen: panel.closed === null && end === null,
      result: panel.closed === null ? (hasFailed ? 'failed' : null) : 'completed',
      label: lengthText(to - from),
    },
  ];
}

/** The lanes of the members of a node's executions. */
function memberLanes(own: readonly Step[], { scope, place }: Placing): readonly Lane[] {
  const all = own.flatMap(({ step, panel }) => panel?.members.map((member) => ({ ...member, panelStep: step })) ?? []);
  const labels = new Map(all.map(({ member, label }) => [member, label]));
  return [...labels].map(([member, label]) => ({
    node: own[0]?.node ?? null,
    label,
    members: [],
    segments: all
      .filter((each) => each.member === member)
      .flatMap(({ attempts, panelStep: step }) =>
        attempts.flatMap((attempt) => segmentsOf(attempt, { step, member, scope, place })),
      ),
  }));
}

function segmentsOf(
  attempt: Attempt,
  { step, member, scope, place }: Placing & { readonly step: number; readonly member: string | null },
): readonly Segment[] {
  const { ended, started } = attempt;
  const isOpen = ended === null && scope.history.end === null;
  const parts: readonly (Stretch | (Omit<Stretch, 'kind'> & { readonly kind: 'lost' }))[] = [
    ...stretchesOfAttempt(attempt, scope),
    ...(ended?.how === 'lost' ? [lostPart(attempt, scope)] : []),
  ].filter(({ fromMs, toMs }, at, all) => toMs > fromMs || at === all.length - 1);
  return parts.map(({ kind, fromMs, toMs }, at): Segment => {
    const isLast = at === parts.length - 1;
    return {
      kind: kind === 'lost' || kind === 'back-off' || kind === 'outage' ? kind : 'work',
      number: step,
      attempt: attempt.attempt,
      member,
      seq: started.seq,
      x0: place(fromMs),
      x1: place(toMs),
      isOpen: isLast && isOpen,
      result: isLast ? (ended?.how ?? null) : null,
      label: lengthText(toMs - fromMs),
    };
  });
}

function lostPart({ started, delayMs, ended }: Attempt, { timeOf }: Scope) {
  const to = timeOf(ended);
  const from = Math.min(to, timeOf(started) + delayMs);
  return { kind: 'lost', fromMs: from, toMs: to } as const;
}

/** The wait of an attempt, then its work. The work of a lost attempt has an unknown duration. */
export function stretchesOfAttempt(attempt: Attempt, { history, timeOf }: Scope): readonly Stretch[] {
  const { started, delayMs, outageMs, ended } = attempt;
  const [from, to] = [timeOf(started), timeOf(ended ?? history.end)];
  const called = Math.min(to, from + delayMs);
  const wait: Stretch = { kind: 'back-off', fromMs: from, toMs: called };
  if (ended?.how === 'lost') return [wait];
  return [wait, { kind: outageMs === null ? 'work' : 'outage', fromMs: called, toMs: to }];
}
