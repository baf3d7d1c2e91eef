/**
 * A circuit breaker for each model. While a model's server is out its circuit is open: one call at a time finds out
 * whether the server is back; every other waits for what that finds. So a server that starts again meets one caller and
 * not all of them, and nobody gives up on a server that has just come back.
 */
import type { ModelFailed } from '../errors.js';
import { callAborted } from './call-aborted.js';
import type { CircuitDeps, Pass } from './circuit.js';
import { Circuit } from './circuit.js';
import type { OutageWait } from './outage.js';
import { outageMet } from './outage.js';

export interface CircuitBreakerOptions {
  /** Budget of the outages that begin here, in milliseconds. */
  readonly outageMs: number;
  readonly ambient: CircuitDeps['ambient'];
  /** Told with the failure when a model's server is found out, and with null when it has answered again. */
  readonly onOutage: (model: string, failure: ModelFailed | null) => void;
}

export interface PassTerms {
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
  enter(model: string, terms: PassTerms): Promise<Pass>;
  /** Models whose servers are out. */
  open(): readonly string[];
}

/** Circuit breakers for all models of a provider, all closed. */
export function circuitBreaker({ outageMs, ambient, onOutage }: CircuitBreakerOptions): CircuitBreaker {
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
    circuits.set(model, new Circuit(model, failure, { ambient, onClosed, freePass: () => freePass(model) }));
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
      const pass = circuit.look();
      if (pass !== null) return pass;
      if (outage !== null) return await circuit.wait(outage, signal);
      const { failure, retryAfterMs } = circuit;
      throw outageMet(failure, { outageMs, retryAfterMs });
    },
    open: () => [...circuits.keys()].filter((model) => circuits.get(model)?.isForgotten === false),
  };
}
