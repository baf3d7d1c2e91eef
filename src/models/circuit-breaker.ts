/** Circuit breakers for models whose servers are out: one caller at a time probes a server, the others wait. */
import type { System } from '../system/system.js';
import { ModelFailed } from '../errors.js';
import type { Backoff } from '../system/async/retry.js';
import { backoffMs, honouredMs } from '../system/async/retry.js';
import { isOutage } from './failed-exchange.js';
import { callAborted } from './port.js';

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
/** How long a circuit without callers stays open after its next probe was due, in milliseconds. */
const MEMORY_MS = 10_000;

/** The open circuit of one model. */
class Circuit {
  readonly #system: CircuitBreakerOptions['system'];
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

  /** @param failure of the call that found the server out */
  constructor(failure: ModelFailed, system: CircuitBreakerOptions['system']) {
    this.#system = system;
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
    this.#setDue(BACKOFF.longestMs);
    this.#isAsked = false;
  }

  endProbe(): void {
    this.#probes -= 1;
  }

  /** The server is out, still or again. */
  fail(failure: ModelFailed): void {
    const waitMs = backoffMs(BACKOFF, this.#failures + 1);
    // At least half of the wait: with full jitter some waits would be near zero.
    const drawnMs = (waitMs * (1 + this.#system.random())) / 2;
    const askedMs = honouredMs(failure.data.retryAfterMs);
    this.#failure = failure;
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
  /** The outage that the caller waits out, or null if it knows of none. */
  readonly outage: OutageWait | null;
  /** Cancels the wait. */
  readonly signal: AbortSignal;
}

export interface CircuitBreaker {
  /**
   * Waits until the caller may call a model: not at all while its circuit is closed, else until a probe has been answered
   * or the caller may probe.
   *
   * @throws {ModelFailed} `aborted` by the signal; with `outageMs` at once when the circuit is open and the caller
   * waits out no outage yet; not retryable when its outage has outlasted its budget
   */
  enter(model: string, options: EnterOptions): Promise<Pass>;
  /** Models whose servers are out. */
  open(): readonly string[];
}

/**
 * Circuit breakers for all models of a provider, all closed. While a model's server is out its circuit is open: one
 * call at a time probes the server and the others wait for the result. So a server that restarts is not hit by all
 * callers at once, and no caller gives up on a server that has just come back.
 */
export function circuitBreaker({ outageMs, system, onOutage }: CircuitBreakerOptions): CircuitBreaker {
  /** The open circuits. One that is forgotten is dropped when it is accessed, or when another opens. */
  const circuits = new Map<string, Circuit>();

  const circuitOf = (model: string): Circuit | undefined => {
    if (circuits.get(model)?.isForgotten === true) circuits.delete(model);
    return circuits.get(model);
  };
  const open = (model: string, failure: ModelFailed): void => {
    for (const each of circuits.keys()) circuitOf(each);
    if (circuits.has(model)) return;
    circuits.set(model, new Circuit(failure, system));
    onOutage(model, failure);
  };
  const close = (model: string, circuit: Circuit): void => {
    circuits.delete(model);
    onOutage(model, null);
    circuit.wake();
  };
  const freePass = (model: string): Pass => ({
    isRevoked: () => circuits.has(model),
    report(outcome) {
      if (outageMs > 0 && outcome instanceof ModelFailed && isOutage(outcome.data.kind)) open(model, outcome);
    },
  });
  const probe = (model: string, circuit: Circuit): Pass => {
    circuit.beginProbe();
    return {
      isRevoked: () => false,
      report(outcome) {
        circuit.endProbe();
        // A probe that hung may end when its circuit has been closed and another has opened.
        if (circuits.get(model) !== circuit) return;
        if (outcome === 'answered') close(model, circuit);
        else if (outcome === 'unknown') circuit.retryNow();
        else circuit.fail(outcome);
      },
    };
  };

  return {
    async enter(model, { outage, signal }) {
      for (;;) {
        if (signal.aborted) throw callAborted(signal);
        const circuit = circuitOf(model);
        if (circuit === undefined) return freePass(model);
        const endsMs = outage?.endsMs ?? Number.POSITIVE_INFINITY;
        if (circuit.mayProbe(endsMs)) return probe(model, circuit);
        const { failure, retryAfterMs } = circuit;
        if (outage === null) throw outageMet(failure, { outageMs, retryAfterMs });
        if (circuit.hasOutlasted(endsMs)) throw outlasted(failure, { model, since: outage.since, now: system.now() });
        await circuit.wait(endsMs, signal);
      }
    },
    open: () => [...circuits.keys()].filter((model) => circuits.get(model)?.isForgotten === false),
  };
}

// Outages of a model's server, from the view of a caller that waits them out.

/** An outage as it is recorded of a node that waits it out. */
export interface Outage {
  /** When the node first met it, ISO 8601. */
  readonly since: string;
  /** How long the node waits for the server from then on, in milliseconds. */
  readonly budgetMs: number;
}

/** How long a caller waits an outage out. */
interface OutageWait {
  readonly since: string;
  /** End of the outage's budget, on the monotonic clock: a wall clock that is behind does not prolong it. */
  readonly endsMs: number;
}

/** How long an outage is waited out from now on. */
export function outageWait(
  { since, budgetMs }: Outage,
  { now, monotonicMs }: Pick<System, 'now' | 'monotonicMs'>,
): OutageWait {
  const leftMs = Math.min(budgetMs, Date.parse(since) + budgetMs - Date.parse(now()));
  return { since, endsMs: monotonicMs() + leftMs };
}

/** The failure of a caller that was not waiting out an outage: one begins for it now, with this budget. */
export function outageMet(
  { message, data: { kind } }: ModelFailed,
  { outageMs, retryAfterMs }: { readonly outageMs: number; readonly retryAfterMs: number | undefined },
): ModelFailed {
  const wait = retryAfterMs !== undefined && { retryAfterMs };
  return new ModelFailed(message, { kind, retryable: true, outageMs, ...wait });
}

/** The failure of a caller whose outage has outlasted its budget. */
export function outlasted(
  { message, data: { kind } }: ModelFailed,
  { model, since, now }: { readonly model: string; readonly since: string; readonly now: string },
): ModelFailed {
  const seconds = Math.max(0, Date.parse(now) - Date.parse(since)) / 1000;
  const text = `Model "${model}" was unreachable for ${seconds.toFixed(1)} s: ${message}`;
  return new ModelFailed(text, { kind, retryable: false });
}
