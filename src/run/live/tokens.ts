/** Drafts as they are written, told to whoever listens at that moment. Nothing is kept and nothing is recorded. */

import type { TokenSink } from '../../council/step.js';

/** A piece of a draft. A node's next attempt begins its draft anew, and so does a later turn of the same attempt. */
export interface Token {
  readonly runId: string;
  readonly node: string;
  readonly step: number;
  readonly attempt: number;
  /** From 1: grows when what was told before turns out to be no part of the draft (thoughts, words before tool calls). */
  readonly turn: number;
  readonly text: string;
}

/** Called while the model is still answering: must not wait, and bounds what it keeps itself. One that throws hears no more. */
export type TokenListener = (token: Token) => void;

/** Listeners of all runs together; one more is refused, and its client does without tokens. */
const MAX_LISTENERS = 10_000;

export class TokenBus {
  readonly #listeners = new Map<string, Set<TokenListener>>();
  readonly #onFault: (runId: string, error: unknown) => void;
  #count = 0;

  constructor(onFault: (runId: string, error: unknown) => void) {
    this.#onFault = onFault;
  }

  /**
   * Hears a run's tokens from its next call to a model on.
   *
   * @returns ends it, may be called twice; null when too many listen
   */
  subscribe(runId: string, listener: TokenListener): (() => void) | null {
    if (this.#count >= MAX_LISTENERS) return null;
    const listeners = this.#listeners.get(runId) ?? new Set();
    const leave = (): void => {
      if (!listeners.delete(guarded)) return;
      this.#count -= 1;
      if (listeners.size === 0) this.#listeners.delete(runId);
    };
    // A listener's fault is no fault of the model that speaks.
    const guarded: TokenListener = (token) => {
      try {
        listener(token);
      } catch (error) {
        leave();
        this.#onFault(runId, error);
      }
    };
    listeners.add(guarded);
    this.#listeners.set(runId, listeners);
    this.#count += 1;
    return leave;
  }

  /** Where a call to a model sends its text; null while nobody listens to the run, so that nothing need be streamed. */
  sinkFor(runId: string, from: Pick<Token, 'node' | 'step' | 'attempt'>): TokenSink | null {
    if (!this.#listeners.has(runId)) return null;
    return (text, turn) => {
      if (text === '') return;
      for (const listener of this.#listeners.get(runId) ?? []) listener({ runId, ...from, turn, text });
    };
  }
}
