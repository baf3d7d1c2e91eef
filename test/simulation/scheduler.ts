/**
 * Virtual time. Everything in a simulation is a turn in one queue, and the seed decides when each turn is due. Neither
 * a clock nor a timer of the machine is involved.
 */
import type { System } from '../../src/system/system.js';
import { nodeSystem } from '../../src/system/system.js';
import { seededRandom } from '../support/seeded-random.js';

/** Random draws of a seed. */
export class Draws {
  readonly random: () => number;

  constructor(seed: number) {
    this.random = seededRandom(seed);
  }

  /** A whole number in [from, to]. */
  whole(from: number, to: number): number {
    return from + Math.floor(this.random() * (to - from + 1));
  }

  chance(share: number): boolean {
    return this.random() < share;
  }

  pick<T>(options: readonly [T, ...T[]]): T {
    return options[Math.floor(this.random() * options.length)] ?? options[0];
  }

  /** A duration in milliseconds: mostly a few, sometimes up to 60, rarely up to `longestMs`. */
  latencyMs(longestMs: number): number {
    const scale = this.random();
    return this.random() * (scale < 0.93 ? 4 : scale < 0.99 ? 60 : longestMs);
  }
}

interface Turn {
  /** The planned time, which orders the turns that a frozen process missed. */
  readonly dueMs: number;
  readonly order: number;
  /** The process, or null for turns that no fault stops. */
  readonly owner: Process | null;
  atMs: number;
  act: (() => void) | null;
}

/** Turns that are queued at once in the event loop. */
const TURNS_AT_ONCE = 64;

export class Scheduler {
  nowMs = 0;
  turns = 0;
  /** Called at every turn, if not null. */
  onTurn: ((owner: Process | null) => void) | null = null;
  readonly #heap: Turn[] = [];
  #orders = 0;

  /** Returns a function that cancels the turn. */
  at(atMs: number, owner: Process | null, act: () => void): () => void {
    const dueMs = Math.max(atMs, this.nowMs);
    this.#orders += 1;
    const turn: Turn = { dueMs, atMs: dueMs, order: this.#orders, owner, act };
    this.#push(turn);
    return () => void (turn.act = null);
  }

  after(delayMs: number, owner: Process | null, act: () => void): () => void {
    return this.at(this.nowMs + delayMs, owner, act);
  }

  /**
   * Takes turns until `isOver`. Returns false if the time ends before, or if no turn is left. All promises of a turn settle
   * before the next one, because Node empties its microtask queue between two immediates.
   */
  run(isOver: () => boolean, untilMs: number): Promise<boolean> {
    return new Promise((resolve, reject) => {
      let left = 0;
      let isSettled = false;
      const settle = (isReached: boolean): void => {
        isSettled = true;
        resolve(isReached);
      };
      const fill = (): void => {
        left = TURNS_AT_ONCE;
        for (let each = 0; each < TURNS_AT_ONCE; each += 1) setImmediate(take);
      };
      const take = (): void => {
        left -= 1;
        if (isSettled) return;
        try {
          if (isOver()) return settle(true);
          if (!this.#turn(untilMs)) return settle(false);
        } catch (error) {
          isSettled = true;
          reject(error instanceof Error ? error : new Error(String(error)));
        }
        if (left === 0) fill();
      };
      fill();
    });
  }

  #turn(untilMs: number): boolean {
    for (let turn = this.#pop(); turn !== undefined; turn = this.#pop()) {
      const { owner, act } = turn;
      if (act === null || owner?.isDead === true) continue;
      if (owner !== null && owner.frozenUntilMs > turn.atMs) {
        turn.atMs = owner.frozenUntilMs;
        this.#push(turn);
        continue;
      }
      if (turn.atMs > untilMs) {
        this.#push(turn);
        return false;
      }
      this.nowMs = turn.atMs;
      this.turns += 1;
      this.onTurn?.(owner);
      act();
      return true;
    }
    return false;
  }

  #push(turn: Turn): void {
    const heap = this.#heap;
    let at = heap.push(turn) - 1;
    for (let up = (at - 1) >> 1; at > 0; at = up, up = (at - 1) >> 1) {
      const parent = heap[up];
      if (parent === undefined || !isBefore(turn, parent)) break;
      heap[at] = parent;
    }
    heap[at] = turn;
  }

  #pop(): Turn | undefined {
    const heap = this.#heap;
    const [first] = heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return first;
    let at = 0;
    for (;;) {
      const left = 2 * at + 1;
      const [one, other] = [heap[left], heap[left + 1]];
      const child = one !== undefined && other !== undefined && isBefore(other, one) ? other : one;
      if (child === undefined || !isBefore(child, last)) break;
      heap[at] = child;
      at = child === one ? left : left + 1;
    }
    heap[at] = last;
    return first;
  }
}

function isBefore(one: Turn, other: Turn): boolean {
  return (
    one.atMs - other.atMs < 0 || (one.atMs === other.atMs && (one.dueMs - other.dueMs || one.order - other.order) < 0)
  );
}

const { sha256, uuidOf: uuidV5 } = nodeSystem();
const BEGINNING_MS = Date.parse('2026-01-01T00:00:00.000Z');

/** One life of an instance. Its turns end with it. */
export class Process {
  isDead = false;
  frozenUntilMs = 0;
  /** Error of its wall clock in milliseconds. */
  wallOffsetMs = 0;
  /** Number of pending timers. */
  timers = 0;
  /** Id of this life, unique in its history. */
  readonly life: number;
  readonly draws: Draws;
  readonly system: System;
  readonly #scheduler: Scheduler;

  /** @param rate speed of its clocks: 1.1 means that they gain six minutes an hour */
  constructor(scheduler: Scheduler, { seed, life, rate }: { seed: number; life: number; rate: number }) {
    this.#scheduler = scheduler;
    this.life = life;
    this.draws = new Draws(seed * 1_000 + life);
    const elapsedMs = (): number => scheduler.nowMs * rate;
    let ids = 0;
    this.system = {
      now: () => new Date(BEGINNING_MS + elapsedMs() + this.wallOffsetMs).toISOString(),
      monotonicMs: elapsedMs,
      uuid: () => uuidOf(life, (ids += 1)),
      random: () => this.draws.random(),
      sha256,
      uuidOf: uuidV5,
      secret: () => uuidOf(life, (ids += 1)).padEnd(43, '_'),
      isEqual: (one, other) => one === other,
      after: (delayMs, callback) => this.#timer(delayMs / rate, callback),
      soon: (callback) => void this.after(0, callback),
    };
  }

  after(delayMs: number, act: () => void): () => void {
    return this.#scheduler.after(delayMs, this, act);
  }

  #timer(delayMs: number, callback: () => void): () => void {
    let isSet = true;
    const ended = (): void => {
      if (isSet) this.timers -= 1;
      isSet = false;
    };
    this.timers += 1;
    const cancel = this.after(delayMs, () => {
      ended();
      callback();
    });
    return () => {
      ended();
      cancel();
    };
  }
}

/** An id that is unique in its history. */
export function uuidOf(life: number, count: number): string {
  return `${life.toString(16).padStart(8, '0')}-0000-4000-8000-${count.toString(16).padStart(12, '0')}`;
}
