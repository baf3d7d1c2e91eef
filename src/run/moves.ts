/**
 * Where a chart goes, once it has been asked. From one state by one kind of event a run's chart always comes to the
 * same state, for whether the event is allowed there is one guard's business; so XState works each move out once, and
 * later ones take the state from here, in a fraction of the time.
 */
import type { StateValue } from 'xstate';

/**
 * Most that is kept of a chart, in characters of its states as JSON, and what a move counts for; a character stands for
 * six bytes. A graph that forks has more states than can be kept: moves beyond are worked out each time.
 */
const MAX_CHARS = 100_000;
const MOVE_CHARS = 50;

/** Of the snapshots kept only the state counts. States are told apart by the identity of their values, which are shared. */
export class Moves<State extends { readonly value: StateValue }> {
  readonly #from = new Map<StateValue, Map<string, State>>();
  readonly #byValue = new Map<string, State>();
  #chars = 0;

  /** The state that an event leads to; undefined when it has not been worked out. */
  find(from: StateValue, event: string): State | undefined {
    return this.#from.get(from)?.get(event);
  }

  /** Keeps where an event has led; returns the state that goes for it from now on. */
  keep(from: StateValue, event: string, to: State): State {
    const text = JSON.stringify(to.value);
    const known = this.#byValue.get(text) ?? to;
    if (this.#chars >= MAX_CHARS) return known;
    this.#chars += MOVE_CHARS + (known === to ? text.length : 0);
    this.#byValue.set(text, known);
    const moves = this.#from.get(from) ?? new Map<string, State>();
    this.#from.set(from, moves.set(event, known));
    return known;
  }
}
