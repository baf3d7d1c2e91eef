/**
 * Circuit breakers for models whose servers are out, or time out again and again: one caller at a time probes the server,
 * the others wait. A probe that hangs lets the next begin after ten seconds.
 */
import type { System } from '../system/system.js';
import { ModelFailed } from '../errors.js';
import type { Backoff } from '../system/async/retry.js';
import { backoffMs, honouredMs } from '../system/async/retry.js';
import { callAborted } from './port.js';

/** Permission to call a model once. Exactly one of its other methods must be called afterwards. */
export interface Pass {
  /** Whether the server has gone out since: the call must not be made, the caller enters again. */
  isRevoked(): boolean;
  /** The server has answered, even if with a refusal. */
  answered(): void;
  /** The server is out. */
  failed(failure: ModelFailed): void;
  /** No answer came in time, or the reason is unknown: that closes no circuit, and opens one only when it is a habit. */
  unanswered(failure: ModelFailed): void;
  /** The call was not made or was cancelled: nothing is known about the server. */
  givenUp(): void;
}

interface CircuitDeps {
  readonly system: Pick<System, 'after' | 'monotonicMs' | 'now' | 'random'>;
  /** The server is back: the circuit is removed. */
  readonly onClosed: () => void;
  /** A pass while the circuit is closed. */
  readonly freePass: () => Pass;
}

/**
 * First wait between two probes, in milliseconds; doubles with each failure, up to the longest.
 */
const BACKOFF: Backoff = { firstMs: 500, longestMs: 10_000 };
/** Time over which the waiting calls are spread when a server is back, in milliseconds, to spare the server. */
const SPREAD_MS = 1_000;
/** Timeouts of a model in a row, without an answer between, that count as an outage. By default one run alone makes fewer. */
const MAX_TIMEOUTS = 10;
/** Models whose timeouts are counted; past it the one that timed out first is forgotten. */
const MAX_COUNTED_MODELS = 1_000;
/** How long a circuit without waiters stays open after its next probe was due, in milliseconds. */
const MEMORY_MS = 10_000;

interface Waiter {
  readonly since: string;
  /** Its budget is spent: it only waits for the result of the probe in flight. */
  isExpired: boolean;
  /** Stops waiting: removes its timer and signal listener. */
  leave(): void;
  resolve(pass: Pass): void;
  reject(failure: ModelFailed): void;
  readonly signal: AbortSignal;
}

class Circuit {
  readonly model: string;
  readonly #deps: CircuitDeps;
  #failure: ModelFailed;
  /** Consecutive failed probes. */
  #failures = 0;
  /** When the next probe is due, on the monotonic clock. */
  #dueMs = 0;
  /** Whether the server itself asked for that wait (Retry-After). */
  #isAsked = false;
  /** The probe whose result is waited for; null: none. */
  #probing: Pass | null = null;
  #isClosed = false;
  /** In order of arrival; the first makes the next probe. At most the model calls of all active runs. */
  readonly #waiters = new Set<Waiter>();
  #cancelProbe: () => void = () => undefined;

  /** @param failure of the call that found the server out */
  constructor(model: string, failure: ModelFailed, deps: CircuitDeps) {
    this.model = model;
    this.#deps = deps;
    this.#failure = failure;
    this.#recordFailure(failure);
  }

  /** The failure of the last probe. */
  get failure(): ModelFailed {
    return this.#failure;
  }

  /** The rest of the wait that the server asked for, in milliseconds; undefined: it asked for none. */
  get retryAfterMs(): number | undefined {
    const leftMs = this.#dueMs - this.#deps.system.monotonicMs();
    return this.#isAsked && leftMs > 0 ? leftMs : undefined;
  }

  /** Whether nobody has waited for so long that the failure is out of date. */
  get isForgotten(): boolean {
    return this.#isIdle && this.#deps.system.monotonicMs() > this.#dueMs + MEMORY_MS;
  }

  /** A pass to probe now, if a probe is due and nobody else is to make it; else null. */
  tryProbe(): Pass | null {
    return this.#isIdle && this.#deps.system.monotonicMs() >= this.#dueMs ? this.#probe() : null;
  }

  /**
   * Waits until the server is back or it is the caller's turn to probe, at the latest when its outage's budget ends.
   *
   * @throws {ModelFailed} `aborted` by the signal; not retryable when the outage has outlasted its budget
   */
  wait({ since, endsMs }: OutageWait, signal: AbortSignal): Promise<Pass> {
    const { system } = this.#deps;
    return new Promise((resolve, reject) => {
      const giveUp = (): void => {
        waiter.leave();
        reject(callAborted(signal));
        this.#scheduleProbe();
      };
      const leave = (): void => {
        this.#waiters.delete(waiter);
        cancelBudget();
        signal.removeEventListener('abort', giveUp);
      };
      const waiter: Waiter = { since, isExpired: false, leave, resolve, reject, signal };
      const leftMs = Math.max(0, endsMs - system.monotonicMs());
      const cancelBudget = system.after(leftMs, () => this.#expire(waiter));
      signal.addEventListener('abort', giveUp, { once: true });
      this.#waiters.add(waiter);
      this.#scheduleProbe();
    });
  }

  get #isIdle(): boolean {
    return this.#probing === null && this.#waiters.size === 0;
  }

  /**
   * A budget is spent: the waiter makes a last probe, or waits for the one in flight; within a Retry-After it fails.
   */
  #expire(waiter: Waiter): void {
    waiter.isExpired = true;
    if (this.#probing !== null) return;
    if (this.retryAfterMs === undefined) return this.#letProbe(waiter);
    this.#refuse(waiter);
    this.#scheduleProbe();
  }

  #letProbe(waiter: Waiter): void {
    waiter.leave();
    waiter.resolve(this.#probe());
  }

  #refuse(waiter: Waiter): void {
    waiter.leave();
    const { model, failure } = this;
    waiter.reject(outlasted(failure, { model, since: waiter.since, now: this.#deps.system.now() }));
  }

  /** One that hangs holds the others up only as long as the longest wait between two: then the next may probe too. */
  #probe(): Pass {
    const { system } = this.#deps;
    this.#cancelProbe();
    /** Whether it was this probe whose result is waited for; now none is. */
    const release = (): boolean => {
      cancelHold();
      const isAwaited = this.#probing === probe;
      if (isAwaited) this.#probing = null;
      return isAwaited;
    };
    const failed = (failure: ModelFailed): void => {
      if (!release()) return;
      this.#recordFailure(failure);
      for (const waiter of this.#waiters) if (waiter.isExpired) this.#refuse(waiter);
      this.#scheduleProbe();
    };
    const giveUp = (): void => {
      if (!release()) return;
      this.#dueMs = system.monotonicMs();
      this.#scheduleProbe();
    };
    const probe: Pass = {
      isRevoked: () => false,
      answered: () => {
        release();
        this.#close();
      },
      failed,
      unanswered: failed,
      givenUp: giveUp,
    };
    const cancelHold = system.after(BACKOFF.longestMs, giveUp);
    this.#probing = probe;
    return probe;
  }

  #recordFailure(failure: ModelFailed): void {
    const { system } = this.#deps;
    const waitMs = backoffMs(BACKOFF, this.#failures + 1);
    // At least half of the wait: with full jitter some waits would be near zero.
    const drawnMs = (waitMs * (1 + system.random())) / 2;
    const askedMs = honouredMs(failure.data.retryAfterMs);
    this.#failure = failure;
    this.#failures += 1;
    this.#isAsked = askedMs >= drawnMs;
    this.#dueMs = system.monotonicMs() + Math.max(drawnMs, askedMs);
  }

  /** Schedules the first waiter to probe when that is due. */
  #scheduleProbe(): void {
    this.#cancelProbe();
    if (this.#probing !== null || this.#waiters.size === 0) return;
    const { system } = this.#deps;
    this.#cancelProbe = system.after(Math.max(0, this.#dueMs - system.monotonicMs()), () => {
      const [first] = this.#waiters;
      if (first !== undefined) this.#letProbe(first);
    });
  }

  #close(): void {
    this.#cancelProbe();
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#deps.onClosed();
    for (const waiter of this.#waiters) {
      waiter.leave();
      this.#goOnSoon(waiter);
    }
  }

  #goOnSoon({ signal, resolve, reject }: Waiter): void {
    const { system, freePass } = this.#deps;
    const cancel = system.after(system.random() * SPREAD_MS, () => {
      signal.removeEventListener('abort', giveUp);
      resolve(freePass());
    });
    const giveUp = (): void => {
      cancel();
      reject(callAborted(signal));
    };
    signal.addEventListener('abort', giveUp, { once: true });
  }
}

export interface CircuitBreakerOptions {
  /** Budget of the outages that begin here, in milliseconds. */
  readonly outageMs: number;
  readonly system: CircuitDeps['system'];
  /** Told with the failure when a model's server is found out, and with null when it has answered again. */
  readonly onOutage: (model: string, failure: ModelFailed | null) => void;
}

export interface EnterOptions {
  /** The outage that the caller waits out; null: it knows of none. */
  readonly outage: OutageWait | null;
  /** Cancels the wait. */
  readonly signal: AbortSignal;
}

export interface CircuitBreaker {
  /**
   * Waits until a model may be called: not at all while its circuit is closed, else as `Circuit.wait` describes.
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
  /** The open circuits. One that is out of date is dropped when it is accessed, or when another opens. */
  const circuits = new Map<string, Circuit>();
  /** Timeouts since a model last answered. */
  const timeouts = new Map<string, number>();

  const circuitOf = (model: string): Circuit | undefined => {
    if (circuits.get(model)?.isForgotten === true) circuits.delete(model);
    return circuits.get(model);
  };
  const open = (model: string, failure: ModelFailed): void => {
    for (const each of circuits.keys()) circuitOf(each);
    if (circuits.has(model)) return;
    const onClosed = (): void => {
      // A probe that hung may be answered when its circuit is forgotten and another has opened.
      if (circuits.get(model) !== circuit) return;
      circuits.delete(model);
      onOutage(model, null);
    };
    const circuit = new Circuit(model, failure, { system, onClosed, freePass: () => freePass(model) });
    circuits.set(model, circuit);
    timeouts.delete(model);
    onOutage(model, failure);
  };
  const freePass = (model: string): Pass => ({
    isRevoked: () => circuits.has(model),
    answered: () => void timeouts.delete(model),
    failed: (failure) => open(model, failure),
    unanswered: (failure) => {
      if (failure.data.kind !== 'timeout' || outageMs === 0) return;
      const count = (timeouts.get(model) ?? 0) + 1;
      timeouts.set(model, count);
      if (count >= MAX_TIMEOUTS) open(model, failure);
      const [first] = timeouts.keys();
      if (first !== undefined && timeouts.size > MAX_COUNTED_MODELS) timeouts.delete(first);
    },
    givenUp: () => undefined,
  });

  return {
    async enter(model, { outage, signal }) {
      if (signal.aborted) throw callAborted(signal);
      const circuit = circuitOf(model);
      if (circuit === undefined) return freePass(model);
      const pass = circuit.tryProbe();
      if (pass !== null) return pass;
      if (outage !== null) return await circuit.wait(outage, signal);
      const { failure, retryAfterMs } = circuit;
      throw outageMet(failure, { outageMs, retryAfterMs });
    },
    open: () => [...circuits.keys()].filter((model) => circuits.get(model)?.isForgotten === false),
  };
}

// Outages of a model's server, from the view of a caller that waits them out.

/** An outage as it is recorded of a node that waits it out. */
export interface Outage {
  /** When the node first met it, ISO 8601. */
  readonly since: string;
  /** How long it is waited for from then on, in milliseconds. */
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
