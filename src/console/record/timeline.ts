/**
 * The timeline of a run. Work is drawn to scale. Waits (for a decision, a back-off, a model's server, an owner, a place in
 * the queue) are breaks of one width with their duration as text, so that a long wait does not compress the work.
 */
import type { EventRef } from '../../run/history/history.js';
import { allAttempts } from '../../run/history/history.js';
import { lengthText } from './durations.js';
import { clockAt } from './executions.js';
import type { RunRecord } from './run-record.js';
import type { Lane, Scope, Stretch, Waiting } from './timeline-lanes.js';
import { humanLane, nodeLanes, stretchesOfAttempt } from './timeline-lanes.js';

/** A period of the run. Positions are from 0 to 1, times in milliseconds since 1970. */
export interface Zone {
  readonly kind: 'work' | Waiting;
  readonly fromMs: number;
  readonly toMs: number;
  readonly x0: number;
  readonly x1: number;
  /** Whether it is not drawn to scale. */
  readonly isBreak: boolean;
  /** Its duration as text. */
  readonly label: string;
}

/** The position of an event. */
export interface EventMark {
  readonly x: number;
}

export interface Timeline {
  readonly fromMs: number;
  readonly toMs: number;
  /** From 0 to 1 without a gap; empty if no time has passed. */
  readonly zones: readonly Zone[];
  /** The human's lane if there were pauses, then started nodes in the order of the graph. */
  readonly lanes: readonly Lane[];
  readonly events: readonly EventMark[];
}

/** Width of one break, and largest width of all breaks. */
const [BREAK, ALL_BREAKS] = [0.05, 0.4];
/** Shorter waits are drawn to scale. */
const BREAK_FROM_MS = 1_000;

/**
 * The timeline up to and including an event, or null before the first.
 *
 * @param now ISO 8601; the end of open periods at the head of a live run
 */
export function timelineAt(record: RunRecord, seq: number, now: string): Timeline | null {
  const history = record.historyAt(seq);
  if (history === null) return null;
  const times = timesOf(record, seq);
  const until = Math.max(Date.parse(clockAt(record, seq, now)), times.at(-1) ?? 0);
  const timeOf = (mark: Pick<EventRef, 'seq'> | null): number => times[mark?.seq ?? -1] ?? until;
  const scope = { history, fromMs: times[0] ?? until, toMs: until, timeOf };
  const zones = scaled(zonesOf(scope));
  const place = (ms: number): number => positionOf(zones, ms);
  return {
    fromMs: scope.fromMs,
    toMs: until,
    zones,
    lanes: [...humanLane(scope, place), ...nodeLanes(scope, place)],
    events: times.map((ms) => ({ x: place(ms) })),
  };
}

/** The position of a time, from 0 to 1; times outside the run are at its ends. */
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

/** Times of the events, never decreasing: the clocks of instances differ. */
function timesOf(record: RunRecord, seq: number): readonly number[] {
  let latest = Number.NEGATIVE_INFINITY;
  return record.events.slice(0, seq + 1).map(({ at }) => {
    const ms = Date.parse(at);
    if (ms > latest) latest = ms;
    return latest;
  });
}

/** If several reasons apply, the first counts: while any node works, the run works. */
const PRIORITY: readonly Zone['kind'][] = ['work', 'human', 'outage', 'back-off', 'no-owner', 'room', 'idle'];

/** The periods from the first event to the last, without a gap. */
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
  const { history, fromMs, timeOf } = scope;
  const attempts = history.steps.flatMap(allAttempts);
  const pauses = history.pauses.map(({ paused, decision }) => {
    return { kind: 'human', fromMs: timeOf(paused), toMs: timeOf(decision ?? history.end) } as const;
  });
  // Between one owner's release and the next claim no instance runs it.
  const unowned = history.owners.flatMap(({ left }, index) => {
    if (left === null) return [];
    const next = history.owners[index + 1]?.claimed ?? history.end;
    const from = left.how === 'lost' ? Date.parse(left.at) : timeOf(left);
    return [{ kind: 'no-owner', fromMs: from, toMs: timeOf(next) } as const];
  });
  const room = { kind: 'room', fromMs, toMs: timeOf(history.started ?? history.end) } as const;
  return [...attempts.flatMap((each) => stretchesOfAttempt(each, scope)), ...pauses, ...unowned, room];
}

/** Gives each break its width, and shares the rest among work and short waits by duration. */
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

export interface TimeSpent {
  readonly totalMs: number;
  readonly byKind: ReadonlyMap<Zone['kind'], number>;
}

/** The duration of a run, in total and by reason. */
export function timeSpent({ fromMs, toMs, zones }: Timeline): TimeSpent {
  const byKind = new Map<Zone['kind'], number>();
  for (const { kind, ...zone } of zones) byKind.set(kind, (byKind.get(kind) ?? 0) + zone.toMs - zone.fromMs);
  return { totalMs: toMs - fromMs, byKind };
}
