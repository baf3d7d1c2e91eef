/**
 * Circuit breakers for models whose servers are out or refuse calls because of a rate limit: one call at a time probes a
 * server, the others wait for the result. So a server that restarts is not hit by all calls at once, and no call gives up
 * on a server that has just come back.
 */
import type { CancelSignal } from '../system/async/deadline.js';
import type { System } from '../system/system.js';
import { ModelFailed } from '../errors.js';
import { BoundedMap } from '../system/bounded-map.js';
import type { CallOutcome, OutageWait } from './circuit.js';
import { isUnsent, withSending } from './billing.js';
import { Circuit } from './circuit.js';
import { isAnswer, isOutage } from './failed-exchange.js';
import { callAborted } from './port.js';

/** Permission to call a model once. */
export interface Pass {
  /** Whether the server has gone out since: the call must not be made, and the caller enters again. */
  isRevoked(): boolean;
  /** Reports how the call ended; every pass needs exactly one report. */
  report(outcome: CallOutcome): void;
}

/** Most open circuits. Model names come from blueprints; beyond, the oldest is forgotten. */
const MAX_CIRCUITS = 1_000;

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
  readonly signal: CancelSignal;
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
  unreachable(): readonly string[] {
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
    const cameMs = outage === null ? this.#options.system.monotonicMs() : null;
    for (;;) {
      if (signal.aborted) throw callAborted(signal);
      const circuit = this.#circuitOf(model);
      if (circuit === undefined) return this.#freePass(model);
      const endsMs = circuit.endsMs(outage);
      if (circuit.mayProbe(endsMs, cameMs)) return this.#probe(model, circuit);
      const failure = circuit.hasOutlasted(endsMs)
        ? this.#outlasted(model, circuit.failure, outage)
        : this.#failureFor(circuit, circuit.failure, outage);
      // A call that waits an outage out may have sent requests before.
      if (failure !== null) throw outage === null ? withSending(failure, true) : failure;
      await circuit.wait(endsMs, signal);
    }
  }

  /** What a call that has failed throws, or null if it waits for an outage to end. */
  failureAfter(model: string, failure: ModelFailed, outage: OutageWait | null): ModelFailed | null {
    const behind = this.#outageBehind(model, failure);
    if (behind === null) return failure;
    const circuit = this.#circuits.get(model);
    const endsMs = circuit?.endsMs(outage) ?? outage?.endsMs ?? Number.POSITIVE_INFINITY;
    const hasEnded = this.#options.system.monotonicMs() >= endsMs;
    const thrown = hasEnded ? this.#outlasted(model, behind, outage) : this.#failureFor(circuit, behind, outage);
    return thrown && withUsageOf(failure, withSending(thrown, isUnsent(failure.data)));
  }

  /**
   * The outage that a failed call has met, or null if it has failed by itself. A call without an answer, such as a timeout,
   * has met the outage whose circuit is open.
   */
  #outageBehind(model: string, failure: ModelFailed): ModelFailed | null {
    const { kind } = failure.data;
    if (this.#options.outageMs === 0 || isAnswer(kind)) return null;
    return isOutage(kind) ? failure : (this.#circuitOf(model)?.failure ?? null);
  }

  /** The failure with which an outage begins for a call, or null for a call that waits one out already. */
  #failureFor(circuit: Circuit | undefined, failure: ModelFailed, outage: OutageWait | null): ModelFailed | null {
    if (outage !== null) return null;
    const retryAfterMs = circuit === undefined ? failure.data.retryAfterMs : circuit.retryAfterMs;
    return new ModelFailed(failure.message, {
      kind: failure.data.kind,
      retryable: true,
      outageMs: Math.round(circuit?.budgetMs ?? this.#options.outageMs),
      ...(retryAfterMs !== undefined && { retryAfterMs }),
    });
  }

  /** The failure of a call whose outage has outlasted its budget. */
  #outlasted(model: string, { message, data: { kind } }: ModelFailed, outage: OutageWait | null): ModelFailed {
    const now = this.#options.system.now();
    const seconds = Math.max(0, Date.parse(now) - Date.parse(outage?.since ?? now)) / 1000;
    const state = kind === 'rate_limited' ? 'refused calls because of its rate limit' : 'was unreachable';
    // All runs share the budget of a rate limit: it may have ended before this call waited.
    const waited = seconds < 0.1 ? '' : ` for ${seconds.toFixed(1)} s`;
    const text = `Model "${model}" ${state}${waited}: ${message}`;
    return new ModelFailed(text, { kind, retryable: false });
  }

  #circuitOf(model: string): Circuit | undefined {
    const circuit = this.#circuits.get(model);
    // The budget of a rate limit counts until the model answers.
    if (circuit?.isForgotten !== true || circuit.isLimited) return circuit;
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
        this.#circuits.get(model)?.onOutcome(outcome);
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
        const current = this.#circuits.get(model);
        if (current !== circuit) current?.onOutcome(outcome);
        else if (outcome === 'answered') this.#close(model, circuit);
        else if (outcome === 'unknown') circuit.retryNow();
        else circuit.fail(outcome);
      },
    };
  }
}

/** A failure with the usage that the failed call has reported. */
function withUsageOf({ data: { usage } }: ModelFailed, thrown: ModelFailed): ModelFailed {
  return usage === undefined ? thrown : new ModelFailed(thrown.message, { ...thrown.data, usage });
}
