/**
 * Circuit breakers for models whose servers are out or refuse calls because of a rate limit: one call at a time probes a
 * server, the others wait for the result. So a server that restarts is not hit by all calls at once, and no call gives up
 * on a server that has just come back.
 */
import type { System } from '../system/system.js';
import type { ModelFailed } from '../errors.js';
import type { Backoff } from '../system/async/retry.js';
import { backoffMs, honouredMs } from '../system/async/retry.js';
import { BoundedMap } from '../system/bounded-map.js';
import { isOutage } from './failed-exchange.js';
import { callAborted } from './port.js';
import type { OutageWait } from './outages.js';
import { outageMet, outlasted } from './outages.js';

/** How a call ended: the failure, or `answered`, or `unknown` if the call was cancelled or not made. */
export type CallOutcome = 'answered' | 'unknown' | ModelFailed;

/** Permission to call a model once. */
export interface Pass {
  /** Whether the server has gone out since: the call must not be made, and the caller enters again. */
  isRevoked(): boolean;
  /** Reports how the call ended; every pass needs exactly one report. */
  report(outcome: CallOutcome): void;
}

/** First wait between two probes, in milliseconds; doubles with each failure, up to the longest. */
const BACKOFF: Backoff = { firstMs: 500, longestMs: 10_000 };
/** The same while the server refuses because of a rate limit (contract, section 5). */
const RATE_LIMIT_BACKOFF: Backoff = { firstMs: 1_000, longestMs: 30_000 };
/** Most open circuits. Model names come from blueprints; beyond, the oldest is forgotten. */
const MAX_CIRCUITS = 1_000;
/** How long a circuit without callers stays open after its next probe was due, in milliseconds. */
const MEMORY_MS = 10_000;

/** The open circuit of one model. */
class Circuit {
  readonly #system: CircuitBreakerOptions['system'];
  /** When the budget ends that all callers share while a rate limit refuses them, on the monotonic clock. */
  readonly #sharedEndsMs: number;
  #failure: ModelFailed;
  /** Failures in a row. */
  #failures = 0;
  /** When the last failure came, on the monotonic clock. */
  #failedMs = 0;
  /** When the next probe is due, on the monotonic clock. While a probe hangs the next one is due as well. */
  #dueMs = 0;
  /** Whether the server itself asked for that wait (Retry-After). */
  #isAsked = false;
  /** Probes under way. */
  #probes = 0;
  /** Functions that wake the waiting callers, in order of arrival. At most the model calls of all active runs. */
  readonly #waiting = new Set<() => void>();
  /** Cancels the timer of the next probe; null without one. It is set while callers wait. */
  #cancelTimer: (() => void) | null = null;

  /**
   * @param failure of the call that found the server out
   * @param outageMs budget of the outage, in milliseconds
   */
  constructor(failure: ModelFailed, outageMs: number, system: CircuitBreakerOptions['system']) {
    this.#system = system;
    this.#sharedEndsMs = system.monotonicMs() + outageMs;
    this.#failure = failure;
    this.fail(failure);
  }

  get failure(): ModelFailed {
    return this.#failure;
  }

  /** The rest of the wait that the server asked for, in milliseconds, or undefined if it asked for none. */
  get retryAfterMs(): number | undefined {
    const leftMs = this.#dueMs - this.#system.monotonicMs();
    return this.#isAsked && leftMs > 0 ? leftMs : undefined;
  }

  /** When a caller's wait ends, on the monotonic clock: by its own budget in an outage, by the shared one at a rate limit. */
  endsMs(outage: OutageWait | null): number {
    if (isRateLimit(this.#failure)) return this.#sharedEndsMs;
    return outage?.endsMs ?? Number.POSITIVE_INFINITY;
  }

  /** The budget of an outage that begins for a caller now, in milliseconds. */
  budgetMs(outageMs: number): number {
    return isRateLimit(this.#failure) ? Math.max(0, this.#sharedEndsMs - this.#system.monotonicMs()) : outageMs;
  }

  get #backoff(): Backoff {
    return isRateLimit(this.#failure) ? RATE_LIMIT_BACKOFF : BACKOFF;
  }

  get #isDue(): boolean {
    return this.#system.monotonicMs() >= this.#dueMs;
  }

  /** Whether the failure is out of date, because no caller has probed for so long. */
  get isForgotten(): boolean {
    const isOld = this.#system.monotonicMs() > this.#dueMs + MEMORY_MS;
    return isOld && this.#probes === 0 && this.#waiting.size === 0;
  }

  /** Whether a caller whose budget ends at `endsMs` may probe now: when a probe is due, or at the end of its budget. */
  mayProbe(endsMs: number): boolean {
    const isLast = endsMs <= this.#system.monotonicMs() && this.#probes === 0 && !this.#isAsked;
    return this.#isDue || (isLast && this.#failedMs < endsMs);
  }

  /** Whether the outage has outlasted a budget that ends at `endsMs`. A probe under way is waited for. */
  hasOutlasted(endsMs: number): boolean {
    return endsMs <= this.#system.monotonicMs() && this.#probes === 0;
  }

  /** Begins a probe. If it hangs, the next probe is due after the longest wait between two. */
  beginProbe(): void {
    this.#probes += 1;
    this.#setDue(this.#backoff.longestMs);
    this.#isAsked = false;
  }

  endProbe(): void {
    this.#probes -= 1;
  }

  /** The server is out, still or again. */
  fail(failure: ModelFailed): void {
    this.#failure = failure;
    const waitMs = backoffMs(this.#backoff, this.#failures + 1);
    // At least half of the wait: with full jitter some waits would be near zero.
    const drawnMs = (waitMs * (1 + this.#system.random())) / 2;
    const askedMs = honouredMs(failure.data.retryAfterMs);
    this.#failures += 1;
    this.#failedMs = this.#system.monotonicMs();
    this.#isAsked = askedMs >= drawnMs;
    this.#setDue(Math.max(drawnMs, askedMs));
  }

  /** Makes the next probe due now. */
  retryNow(): void {
    this.#setDue(0);
  }

  /** Resolves when a probe is due or has ended, at the latest when the budget ends or the signal aborts. */
  wait(endsMs: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        this.#waiting.delete(wake);
        if (this.#waiting.size === 0) this.#stopTimer();
        cancelBudget();
        signal.removeEventListener('abort', wake);
        resolve();
      };
      const leftMs = endsMs - this.#system.monotonicMs();
      const cancelBudget = leftMs > 0 ? this.#system.after(leftMs, wake) : () => undefined;
      signal.addEventListener('abort', wake);
      this.#waiting.add(wake);
      this.#cancelTimer ??= this.#system.after(this.#dueMs - this.#system.monotonicMs(), () => this.retryNow());
    });
  }

  /** Wakes all waiting callers. */
  wake(): void {
    for (const wake of this.#waiting) wake();
  }

  #setDue(inMs: number): void {
    this.#dueMs = this.#system.monotonicMs() + inMs;
    this.#stopTimer();
    this.wake();
  }

  #stopTimer(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = null;
  }
}

export interface CircuitBreakerOptions {
  /** Budget of the outages that begin here, in milliseconds, or 0 if an outage is a failure like any other. */
  readonly outageMs: number;
  readonly system: Pick<System, 'after' | 'monotonicMs' | 'now' | 'random'>;
  /** Called with the failure when a model's server goes out, and with null when it answers again. */
  readonly onOutage: (model: string, failure: ModelFailed | null) => void;
}

export interface EnterOptions {
  /** The outage that the call waits out, or null if its node has met none. */
  readonly outage: OutageWait | null;
  /** Cancels the wait. */
  readonly signal: AbortSignal;
}

/** The circuits of all models, by full name, all closed at first. */
export class CircuitBreaker {
  readonly #options: CircuitBreakerOptions;
  /** The open circuits. One that is forgotten is dropped when it is accessed, or when another opens. */
  readonly #circuits = new BoundedMap<string, Circuit>(MAX_CIRCUITS);

  constructor(options: CircuitBreakerOptions) {
    this.#options = options;
  }

  /** Models whose servers are out, or refuse calls because of a rate limit. */
  open(): readonly string[] {
    return [...this.#circuits].flatMap(([model, circuit]) => (circuit.isForgotten ? [] : [model]));
  }

  /**
   * Waits until a call may be made: not at all while the model's circuit is closed, else until a probe has been answered
   * or this call may probe.
   *
   * @throws {ModelFailed} `aborted` by the signal; with `outageMs` at once when the circuit is open and the call waits
   * out no outage yet; not retryable when its outage has outlasted its budget
   */
  async enter(model: string, { outage, signal }: EnterOptions): Promise<Pass> {
    for (;;) {
      if (signal.aborted) throw callAborted(signal);
      const circuit = this.#circuitOf(model);
      if (circuit === undefined) return this.#freePass(model);
      const endsMs = circuit.endsMs(outage);
      if (circuit.mayProbe(endsMs)) return this.#probe(model, circuit);
      const failure = circuit.hasOutlasted(endsMs)
        ? this.#outlasted(model, circuit.failure, outage)
        : this.#failureFor(circuit, circuit.failure, outage);
      if (failure !== null) throw failure;
      await circuit.wait(endsMs, signal);
    }
  }

  /** The failure of a call that met an outage, or null if it goes on waiting. */
  failureFor(model: string, failure: ModelFailed, outage: OutageWait | null): ModelFailed | null {
    const circuit = this.#circuits.get(model);
    const endsMs = circuit?.endsMs(outage) ?? outage?.endsMs ?? Number.POSITIVE_INFINITY;
    if (this.#options.system.monotonicMs() >= endsMs) return this.#outlasted(model, failure, outage);
    return this.#failureFor(circuit, failure, outage);
  }

  #failureFor(circuit: Circuit | undefined, failure: ModelFailed, outage: OutageWait | null): ModelFailed | null {
    if (outage !== null) return null;
    const { outageMs } = this.#options;
    const retryAfterMs = circuit === undefined ? failure.data.retryAfterMs : circuit.retryAfterMs;
    return outageMet(failure, { outageMs: circuit?.budgetMs(outageMs) ?? outageMs, retryAfterMs });
  }

  #outlasted(model: string, failure: ModelFailed, outage: OutageWait | null): ModelFailed {
    const now = this.#options.system.now();
    return outlasted(failure, { model, since: outage?.since ?? now, now });
  }

  #circuitOf(model: string): Circuit | undefined {
    const circuit = this.#circuits.get(model);
    // The budget of a rate limit counts until the model answers.
    if (circuit?.isForgotten !== true || isRateLimit(circuit.failure)) return circuit;
    this.#circuits.delete(model);
    return undefined;
  }

  #open(model: string, failure: ModelFailed): void {
    const { outageMs, system, onOutage } = this.#options;
    for (const each of this.#circuits.keys()) this.#circuitOf(each);
    if (this.#circuits.has(model)) return;
    this.#circuits.set(model, new Circuit(failure, outageMs, system));
    onOutage(model, failure);
  }

  #close(model: string, circuit: Circuit): void {
    this.#circuits.delete(model);
    this.#options.onOutage(model, null);
    circuit.wake();
  }

  #freePass(model: string): Pass {
    return {
      isRevoked: () => this.#circuits.has(model),
      report: (outcome) => {
        const isOut = outcome !== 'answered' && outcome !== 'unknown' && isOutage(outcome.data.kind);
        if (this.#options.outageMs > 0 && isOut) this.#open(model, outcome);
      },
    };
  }

  #probe(model: string, circuit: Circuit): Pass {
    circuit.beginProbe();
    return {
      isRevoked: () => false,
      report: (outcome) => {
        circuit.endProbe();
        // A probe that hung may end when its circuit has been closed and another has opened.
        if (this.#circuits.get(model) !== circuit) return;
        if (outcome === 'answered') this.#close(model, circuit);
        else if (outcome === 'unknown') circuit.retryNow();
        else circuit.fail(outcome);
      },
    };
  }
}

function isRateLimit({ data }: ModelFailed): boolean {
  return data.kind === 'rate_limited';
}
