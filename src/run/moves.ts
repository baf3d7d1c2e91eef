/**
 * Where a chart goes, once it has been asked. From one state by one kind of event a run's chart always comes to the
 * same state, for whether the event is allowed there is one guard's business; so XState works each move out once, and
 * later ones take the state from here. Asking it anew takes five times as long.
 */
import type { StateValue } from 'xstate';

/** Most moves kept of a chart. A graph that forks can have more: those beyond are worked out each time. */
const MAX_MOVES = 2_000;

/** Of the snapshots kept only the state counts. States are told apart by the identity of their values, which are shared. */
export class Moves<State extends { readonly value: StateValue }> {
  readonly #from = new Map<StateValue, Map<string, State>>();
  readonly #byValue = new Map<string, State>();
  #size = 0;

  /** The state that an event leads to; undefined when it has not been worked out. */
  find(from: StateValue, event: string): State | undefined {
    return this.#from.get(from)?.get(event);
  }

  /** Keeps where an event has led; returns the state that goes for it from now on. */
  keep(from: StateValue, event: string, to: State): State {
    if (this.#size >= MAX_MOVES) return to;
    this.#size += 1;
    const text = JSON.stringify(to.value);
    const known = this.#byValue.get(text) ?? to;
    this.#byValue.set(text, known);
    const moves = this.#from.get(from) ?? new Map<string, State>();
    this.#from.set(from, moves.set(event, known));
    return known;
  }
}
