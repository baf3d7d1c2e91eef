/** The open circuit of a model whose server is out: one caller at a time looks whether it is back, the others wait. */
import type { System } from '../system/system.js';
import type { ModelFailed } from '../errors.js';
import { callAborted } from './port.js';
import type { OutageWait } from './outage.js';
import { outageMet, outlasted } from './outage.js';

/** Leave to call a model once. Exactly one of `answered`, `failed` and `givenUp` is told afterwards. */
export interface Pass {
  /** Whether the server has gone out since: the call is not to be made, the caller comes again. */
  isRevoked(): boolean;
  /** The server has answered, be it with a refusal. */
  answered(): void;
  /** The server is out. */
  failed(failure: ModelFailed): void;
  /** Nothing was learnt of the server. */
  givenUp(): void;
}

interface CircuitDeps {
  readonly system: Pick<System, 'after' | 'monotonicMs' | 'now' | 'random'>;
  /** The server is back: the circuit is of no use any more. */
  readonly onClosed: () => void;
  /** A pass while the circuit is closed. */
  readonly freePass: () => Pass;
}

/** First wait between two looks, in milliseconds; doubles with each that fails, up to the longest (contract, section 5). */
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 10_000;
/** A server's Retry-After is honoured up to this (contract, section 1). */
const LONGEST_RETRY_AFTER_MS = 60_000;
/** Time over which those who waited go on when a server is back, in milliseconds: longer spares it more, and costs that. */
const SPREAD_MS = 1_000;
/** How long after its next look was due a circuit at which nobody waits still counts, in milliseconds. */
const MEMORY_MS = 10_000;

interface Waiter {
  readonly since: string;
  /** Its budget has ended: it only waits for what comes of the look under way. */
  isExpired: boolean;
  /** Waits no more; its timer and its signal are forgotten. */
  leave(): void;
  resolve(pass: Pass): void;
  reject(failure: ModelFailed): void;
  readonly signal: AbortSignal;
}

class Circuit {
  readonly model: string;
  readonly #deps: CircuitDeps;
  #failure: ModelFailed;
  /** Looks in a row that have failed. */
  #failures = 0;
  /** When the next look is due, on the monotonic clock. */
  #dueMs = 0;
  /** Whether the server itself has asked for that wait. */
  #isAsked = false;
  #isProbing = false;
  /** In the order they came; the first makes the next look. At most the model calls of all active runs. */
  readonly #waiters = new Set<Waiter>();
  #cancelProbe: () => void = () => undefined;

  /** @param failure what the call has met that found the server out */
  constructor(model: string, failure: ModelFailed, deps: CircuitDeps) {
    this.model = model;
    this.#deps = deps;
    this.#failure = failure;
    this.#recordFailure(failure);
  }

  /** What the last look has met. */
  get failure(): ModelFailed {
    return this.#failure;
  }

  /** Of the wait that the server has asked for, what is left in milliseconds; undefined: it asks for none. */
  get retryAfterMs(): number | undefined {
    const leftMs = this.#dueMs - this.#deps.system.monotonicMs();
    return this.#isAsked && leftMs > 0 ? leftMs : undefined;
  }

  /** Whether nobody has cared for so long that nothing is known of the server any more. */
  get isForgotten(): boolean {
    return this.#isIdle && this.#deps.system.monotonicMs() > this.#dueMs + MEMORY_MS;
  }

  /** Leave to look now, when a look is due and nobody else is to make it; else null. */
  tryProbe(): Pass | null {
    return this.#isIdle && this.#deps.system.monotonicMs() >= this.#dueMs ? this.#probe() : null;
  }

  /**
   * Waits until the server is back or it is the caller's turn to look, the last time when its outage's budget ends.
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
    return !this.#isProbing && this.#waiters.size === 0;
  }

  /** A budget has ended: that of whoever waits for a look under way counts once this is over. */
  #expire(waiter: Waiter): void {
    waiter.isExpired = true;
    if (this.#isProbing) return;
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

  #probe(): Pass {
    this.#isProbing = true;
    this.#cancelProbe();
    const ended = (): void => {
      this.#isProbing = false;
      this.#scheduleProbe();
    };
    return {
      isRevoked: () => false,
      answered: () => this.#close(),
      failed: (failure) => {
        this.#recordFailure(failure);
        for (const waiter of this.#waiters) if (waiter.isExpired) this.#refuse(waiter);
        ended();
      },
      givenUp: () => {
        this.#dueMs = this.#deps.system.monotonicMs();
        ended();
      },
    };
  }

  #recordFailure(failure: ModelFailed): void {
    const { system } = this.#deps;
    const waitMs = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** this.#failures);
    // No less than half of it: a draw near nothing would be no wait at all.
    const drawnMs = (waitMs * (1 + system.random())) / 2;
    const askedMs = Math.min(LONGEST_RETRY_AFTER_MS, failure.data.retryAfterMs ?? 0);
    this.#failure = failure;
    this.#failures += 1;
    this.#isAsked = askedMs >= drawnMs;
    this.#dueMs = system.monotonicMs() + Math.max(drawnMs, askedMs);
  }

  /** Sees to it that the first of those who wait looks when it is time. */
  #scheduleProbe(): void {
    this.#cancelProbe();
    if (this.#isProbing || this.#waiters.size === 0) return;
    const { system } = this.#deps;
    this.#cancelProbe = system.after(Math.max(0, this.#dueMs - system.monotonicMs()), () => {
      const [first] = this.#waiters;
      if (first !== undefined) this.#letProbe(first);
    });
  }

  #close(): void {
    this.#cancelProbe();
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

// * A circuit breaker for each model. While a model's server is out its circuit is open: one call at a time finds
// out whether the server is back; every other waits for what that finds. So a server that starts again meets one
// caller and not all of them, and nobody gives up on a server that has just come back.

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
  /** Withdraws the caller. */
  readonly signal: AbortSignal;
}

export interface CircuitBreaker {
  /**
   * Waits until a model may be called: not at all while its circuit is closed, else as `Circuit.wait` tells.
   *
   * @throws {ModelFailed} `aborted` by the signal; with `outageMs` at once when the circuit is open and the caller knows
   * of no outage; not retryable when its outage has outlasted its budget
   */
  enter(model: string, options: EnterOptions): Promise<Pass>;
  /** Models whose servers are out. */
  open(): readonly string[];
}

/** Circuit breakers for all models of a provider, all closed. */
export function circuitBreaker({ outageMs, system, onOutage }: CircuitBreakerOptions): CircuitBreaker {
  /** Those that are open. A forgotten one is dropped when it is asked for, or another opens. */
  const circuits = new Map<string, Circuit>();

  const circuitOf = (model: string): Circuit | undefined => {
    if (circuits.get(model)?.isForgotten === true) circuits.delete(model);
    return circuits.get(model);
  };
  const open = (model: string, failure: ModelFailed): void => {
    for (const each of circuits.keys()) circuitOf(each);
    if (circuits.has(model)) return;
    const onClosed = (): void => {
      circuits.delete(model);
      onOutage(model, null);
    };
    circuits.set(model, new Circuit(model, failure, { system, onClosed, freePass: () => freePass(model) }));
    onOutage(model, failure);
  };
  const freePass = (model: string): Pass => ({
    isRevoked: () => circuits.has(model),
    answered: () => undefined,
    failed: (failure) => open(model, failure),
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
