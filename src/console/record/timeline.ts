/**
 * A run along time. Work is drawn to scale; waits (for a human, for a back-off, for a model's server, for an owner, for
 * room) are breaks of one width that tell their real length, so that a night's wait does not squash a minute's work.
 */
import type { Attempt, Course, Mark } from './course.js';
import { lengthText } from './durations.js';
import { untilOf } from './executions.js';
import type { RunRecord } from './run-record.js';

/** Why a run waits. `idle`: nothing is recorded that tells. */
export type Waiting = 'human' | 'back-off' | 'outage' | 'no-owner' | 'room' | 'idle';

/** A stretch of the whole run. Places are from 0 to 1, times in milliseconds since 1970. */
export interface Zone {
  readonly kind: 'work' | Waiting;
  readonly fromMs: number;
  readonly toMs: number;
  readonly x0: number;
  readonly x1: number;
  /** Whether its width says nothing of its length. */
  readonly isBreak: boolean;
  /** Its real length, in words. */
  readonly label: string;
}

/** A stretch of a lane. */
export interface Segment {
  readonly kind: 'work' | 'back-off' | 'outage' | 'lost' | 'human';
  readonly x0: number;
  readonly x1: number;
  /** It goes on. */
  readonly isOpen: boolean;
  /** How it ended; null: it goes on, or has nothing to end in. */
  readonly result: 'completed' | 'failed' | 'lost' | 'approve' | 'reject' | 'modify' | null;
  /** Step of a node's lane, pause of the human's. */
  readonly number: number;
  /** Null on the human's lane. */
  readonly attempt: number | null;
  /** The event it begins with. */
  readonly seq: number;
  /** Its length, in words. */
  readonly label: string;
}

/** What a node has done, or all that humans were asked; `node` is null then. */
export interface Lane {
  readonly node: string | null;
  readonly label: string;
  readonly segments: readonly Segment[];
}

/** Where an event stands. */
export interface EventMark {
  readonly x: number;
}

export interface Timeline {
  readonly fromMs: number;
  readonly toMs: number;
  /** From 0 to 1 without a gap; none where no time has passed. */
  readonly zones: readonly Zone[];
  /** The human's, where there were pauses, then those of nodes that have started, in the order of the graph. */
  readonly lanes: readonly Lane[];
  readonly events: readonly EventMark[];
}

/** Width of a break where there are few of them; of all breaks together at most. */
const [BREAK, ALL_BREAKS] = [0.05, 0.4];
/** Waits that are shorter are drawn to scale. */
const BREAK_FROM_MS = 1_000;

/**
 * A run along time, up to and including an event; null before the first.
 *
 * @param now ISO 8601: where what is open ends, at the head of a live run
 */
export function timelineAt(record: RunRecord, seq: number, now: string): Timeline | null {
  const course = record.courseAt(seq);
  if (course === null) return null;
  const times = timesOf(record, seq);
  const until = Math.max(Date.parse(untilOf(record, seq, now)), times.at(-1) ?? 0);
  const timeOf = (mark: Pick<Mark, 'seq'> | null): number => times[mark?.seq ?? -1] ?? until;
  const scope = { course, fromMs: times[0] ?? until, toMs: until, timeOf };
  const zones = scaled(zonesOf(scope));
  const place = (ms: number): number => positionOf(zones, ms);
  return {
    ...{ fromMs: scope.fromMs, toMs: until, zones },
    lanes: [...humanLane(scope, place), ...nodeLanes(scope, place)],
    events: times.map((ms) => ({ x: place(ms) })),
  };
}

/** The place of a time, from 0 to 1; times before and after the run are at its ends. */
export function positionOf(zones: readonly Zone[], ms: number): number {
  let [low, high] = [0, zones.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    const zone = zones[middle];
    if (zone !== undefined && zone.toMs < ms) low = middle + 1;
    else high = middle;
  }
  const zone = zones[low];
  if (zone === undefined) return 0;
  const share = Math.min(1, Math.max(0, (ms - zone.fromMs) / (zone.toMs - zone.fromMs)));
  return zone.x0 + share * (zone.x1 - zone.x0);
}

/** What a timeline is drawn from. */
interface Scope {
  readonly course: Course;
  readonly fromMs: number;
  readonly toMs: number;
  /** When something was told; null: it has not happened by the end. */
  readonly timeOf: (mark: Pick<Mark, 'seq'> | null) => number;
}

/** Of each event, never earlier than the one before it: clocks of instances differ. */
function timesOf(record: RunRecord, seq: number): readonly number[] {
  let latest = Number.NEGATIVE_INFINITY;
  return record.events.slice(0, seq + 1).map(({ at }) => {
    const ms = Date.parse(at);
    if (ms > latest) latest = ms;
    return latest;
  });
}

/** A stretch of time with a reason. */
interface Stretch {
  readonly kind: Zone['kind'];
  readonly fromMs: number;
  readonly toMs: number;
}

/** Of several reasons at once the first counts: while anything works, the run works. */
const PRIORITY: readonly Zone['kind'][] = ['work', 'human', 'outage', 'back-off', 'no-owner', 'room', 'idle'];

/** Time from the first event to the last, by what the run did. */
function zonesOf(scope: Scope): readonly Stretch[] {
  const { fromMs, toMs } = scope;
  const stretches = stretchesOf(scope)
    .map((each) => ({ ...each, fromMs: Math.max(each.fromMs, fromMs), toMs: Math.min(each.toMs, toMs) }))
    .filter((each) => each.toMs > each.fromMs);
  const changes = stretches.flatMap(({ kind, ...each }) => [
    { ms: each.fromMs, kind, by: 1 },
    { ms: each.toMs, kind, by: -1 },
  ]);
  changes.sort((a, b) => a.ms - b.ms);
  const open = new Map(PRIORITY.map((kind) => [kind, 0]));
  const zones: Stretch[] = [];
  let last = fromMs;
  const close = (ms: number): void => {
    if (ms <= last) return;
    const kind = PRIORITY.find((each) => (open.get(each) ?? 0) > 0) ?? 'idle';
    const before = zones.at(-1);
    if (before?.kind === kind) zones[zones.length - 1] = { ...before, toMs: ms };
    else zones.push({ kind, fromMs: last, toMs: ms });
    last = ms;
  };
  for (const { ms, kind, by } of changes) {
    close(ms);
    open.set(kind, (open.get(kind) ?? 0) + by);
  }
  close(toMs);
  return zones;
}

function stretchesOf(scope: Scope): readonly Stretch[] {
  const { course, fromMs, timeOf } = scope;
  const attempts = course.steps.flatMap((step) => step.attempts);
  const pauses = course.pauses.map(({ paused, decision }) => {
    return { kind: 'human', fromMs: timeOf(paused), toMs: timeOf(decision ?? course.end) } as const;
  });
  // Whoever owns it next claims it: between an owner and the next nobody works on it.
  const unowned = course.owners.flatMap(({ left }, index) => {
    if (left === null) return [];
    const next = course.owners[index + 1]?.claimed ?? course.end;
    const from = left.how === 'lost' ? Date.parse(left.at) : timeOf(left);
    return [{ kind: 'no-owner', fromMs: from, toMs: timeOf(next) } as const];
  });
  const room = { kind: 'room', fromMs, toMs: timeOf(course.begun ?? course.end) } as const;
  return [...attempts.flatMap((each) => stretchesOfAttempt(each, scope)), ...pauses, ...unowned, room];
}

/** An attempt's wait, then its work; of one that was lost nobody knows how long it worked. */
function stretchesOfAttempt(attempt: Attempt, { course, timeOf }: Scope): readonly Stretch[] {
  const { started, delayMs, outageMs, ended } = attempt;
  const [from, to] = [timeOf(started), timeOf(ended ?? course.end)];
  const called = Math.min(to, from + delayMs);
  const wait: Stretch = { kind: 'back-off', fromMs: from, toMs: called };
  if (ended?.how === 'lost') return [wait];
  return [wait, { kind: outageMs === null ? 'work' : 'outage', fromMs: called, toMs: to }];
}

/** Work, and what is too short to be a break, share what the breaks leave. */
function scaled(stretches: readonly Stretch[]): readonly Zone[] {
  const measured = stretches.map((stretch) => {
    const length = stretch.toMs - stretch.fromMs;
    return { ...stretch, length, isBreak: stretch.kind !== 'work' && length >= BREAK_FROM_MS };
  });
  const breaks = measured.filter(({ isBreak }) => isBreak).length;
  const toScale = measured.reduce((sum, { isBreak, length }) => sum + (isBreak ? 0 : length), 0);
  const width = toScale === 0 ? 1 / Math.max(1, breaks) : Math.min(BREAK, ALL_BREAKS / breaks);
  let x = 0;
  return measured.map(({ length, ...zone }, at) => {
    const x0 = x;
    x = x0 + (zone.isBreak ? width : (length / toScale) * (1 - breaks * width));
    return { ...zone, x0, x1: at === measured.length - 1 ? 1 : x, label: lengthText(length) };
  });
}

function humanLane({ course, timeOf }: Scope, place: (ms: number) => number): readonly Lane[] {
  if (course.pauses.length === 0) return [];
  const segments = course.pauses.map(({ number, paused, decision }): Segment => {
    const end = decision ?? course.end;
    const [from, to] = [timeOf(paused), timeOf(end)];
    return {
      ...{ kind: 'human', number, attempt: null, seq: paused.seq },
      ...{ x0: place(from), x1: place(to), isOpen: end === null, result: decision?.action ?? null },
      label: lengthText(to - from),
    };
  });
  return [{ node: null, label: 'Human', segments }];
}

function nodeLanes(scope: Scope, place: (ms: number) => number): readonly Lane[] {
  const { course } = scope;
  return course.plan.graph.nodes.flatMap(({ id, label }) => {
    const own = course.steps.filter(({ node }) => node === id);
    const segments = own.flatMap(({ step, attempts }) =>
      attempts.flatMap((attempt) => segmentsOf(attempt, { step, scope, place })),
    );
    return segments.length === 0 ? [] : [{ node: id, label, segments }];
  });
}

function segmentsOf(
  attempt: Attempt,
  { step, scope, place }: { readonly step: number; readonly scope: Scope; readonly place: (ms: number) => number },
): readonly Segment[] {
  const { ended, started } = attempt;
  const isOpen = ended === null && scope.course.end === null;
  const parts: readonly (Stretch | (Omit<Stretch, 'kind'> & { readonly kind: 'lost' }))[] = [
    ...stretchesOfAttempt(attempt, scope),
    ...(ended?.how === 'lost' ? [lostPart(attempt, scope)] : []),
  ].filter(({ fromMs, toMs }, at, all) => toMs > fromMs || at === all.length - 1);
  return parts.map(({ kind, fromMs, toMs }, at): Segment => {
    const isLast = at === parts.length - 1;
    return {
      ...{ kind: kind === 'lost' || kind === 'back-off' || kind === 'outage' ? kind : 'work' },
      ...{ number: step, attempt: attempt.attempt, seq: started.seq },
      ...{ x0: place(fromMs), x1: place(toMs), isOpen: isLast && isOpen, result: isLast ? (ended?.how ?? null) : null },
      label: lengthText(toMs - fromMs),
    };
  });
}

function lostPart({ started, delayMs, ended }: Attempt, { timeOf }: Scope) {
  const to = timeOf(ended);
  const from = Math.min(to, timeOf(started) + delayMs);
  return { kind: 'lost', fromMs: from, toMs: to } as const;
}

/** How long a run has taken, and how much of it was work. */
export interface TimeSpent {
  readonly totalMs: number;
  readonly byKind: ReadonlyMap<Zone['kind'], number>;
}

/** Sums of a timeline's zones. */
export function timeSpent({ fromMs, toMs, zones }: Timeline): TimeSpent {
  const byKind = new Map<Zone['kind'], number>();
  for (const { kind, ...zone } of zones) byKind.set(kind, (byKind.get(kind) ?? 0) + zone.toMs - zone.fromMs);
  return { totalMs: toMs - fromMs, byKind };
}
