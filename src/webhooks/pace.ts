/**
 * Limits how many attempts this instance starts a second, so that runs have processor time even if every receiver fails at
 * once. While the limit is reached, the webhooks take turns.
 */
import type { System } from '../system/system.js';

/** An attempt takes between one and two milliseconds of processor time. */
const ATTEMPTS_A_SECOND = 300;
/** Time between two turns while webhooks wait, in milliseconds. */
const TURN_MS = 50;

export class Pace {
  readonly #system: Pick<System, 'monotonicMs' | 'after'>;
  /** Callbacks of the webhooks that wait, in the order in which they came: one for each webhook. */
  readonly #waiting = new Set<() => void>();
  #left = ATTEMPTS_A_SECOND;
  #countedMs: number;
  #inTurn: (() => void) | null = null;
  #cancelTurn: (() => void) | null = null;

  constructor(system: Pick<System, 'monotonicMs' | 'after'>) {
    this.#system = system;
    this.#countedMs = system.monotonicMs();
  }

  /** Whether an attempt may start now. If not, calls back when it may. */
  take(callBack: () => void): boolean {
    this.#count();
    const isNext = this.#waiting.size === 0 || this.#inTurn === callBack;
    this.#inTurn = null;
    if (isNext && this.#left >= 1) {
      this.#left -= 1;
      return true;
    }
    this.#waiting.add(callBack);
    this.#cancelTurn ??= this.#system.after(TURN_MS, () => this.#turn());
    return false;
  }

  stop(): void {
    this.#waiting.clear();
    this.#cancelTurn?.();
  }

  #count(): void {
    const nowMs = this.#system.monotonicMs();
    const earned = ((nowMs - this.#countedMs) * ATTEMPTS_A_SECOND) / 1_000;
    this.#left = Math.min(ATTEMPTS_A_SECOND, this.#left + earned);
    this.#countedMs = nowMs;
  }

  #turn(): void {
    this.#cancelTurn = null;
    this.#count();
    // Those that wait again have their next turn after the others.
    for (const callBack of this.#waiting) {
      if (this.#left < 1) break;
      this.#waiting.delete(callBack);
      this.#inTurn = callBack;
      callBack();
    }
    this.#inTurn = null;
    if (this.#waiting.size > 0) this.#cancelTurn ??= this.#system.after(TURN_MS, () => this.#turn());
  }
}
