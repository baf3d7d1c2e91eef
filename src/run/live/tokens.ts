/** Passes drafts on as they are written, to whoever listens at that moment. Nothing is kept and nothing is recorded. */
import type { TokenSink } from '../../council/step.js';

/** A piece of a draft. A node's next attempt begins its draft anew, and so does a later turn of the same attempt. */
export interface Token {
  readonly runId: string;
  readonly node: string;
  readonly step: number;
  readonly attempt: number;
  /** From 1: grows when what was sent before turns out not to belong to the draft (thoughts, words before tool calls). */
  readonly turn: number;
  /** UTF-16 code units of the turn before it, so that a listener who came late knows what was missed. */
  readonly offset: number;
  readonly text: string;
}

/** Called while the model is still answering: must not block, and bounds what it keeps. One that throws is unsubscribed. */
export type TokenListener = (token: Token) => void;

/** Most listeners of all runs together; a further one is refused, and its client gets no tokens. */
const MAX_LISTENERS = 10_000;

/**
 * Of a text that comes at once, the first piece has so many characters, each next one as many as were told before it, up to
 * the most: a short draft is still seen to be written, and a long one costs a listener few messages.
 */
const FIRST_CHARS = 16;
const MAX_CHARS = 8 * 1024;

export class TokenBus {
  readonly #listeners = new Map<string, Set<TokenListener>>();
  readonly #onFault: (runId: string, error: unknown) => void;
  #count = 0;

  constructor(onFault: (runId: string, error: unknown) => void) {
    this.#onFault = onFault;
  }

  /**
   * Listens to a run's tokens from its next call to a model on; of one that somebody listens to already, to the rest.
   *
   * @returns unsubscribes, may be called twice; null when there are too many listeners
   */
  subscribe(runId: string, listener: TokenListener): (() => void) | null {
    if (this.#count >= MAX_LISTENERS) return null;
    const listeners = this.#listeners.get(runId) ?? new Set();
    const unsubscribe = (): void => {
      if (!listeners.delete(guarded)) return;
      this.#count -= 1;
      if (listeners.size === 0) this.#listeners.delete(runId);
    };
    // An error of a listener must not fail the call to the model.
    const guarded: TokenListener = (token) => {
      try {
        listener(token);
      } catch (error) {
        unsubscribe();
        this.#onFault(runId, error);
      }
    };
    listeners.add(guarded);
    this.#listeners.set(runId, listeners);
    this.#count += 1;
    return unsubscribe;
  }

  /** Where a call to a model sends its text; null while nobody listens to the run, so that the answer need not be streamed. */
  sinkFor(runId: string, from: Pick<Token, 'node' | 'step' | 'attempt'>): TokenSink | null {
    if (!this.#listeners.has(runId)) return null;
    let told = { turn: 0, length: 0 };
    let piece = '';
    const flush = (): void => {
      const text = piece;
      if (text === '') return;
      const { turn, length: offset } = told;
      piece = '';
      told = { turn, length: offset + text.length };
      for (const listener of this.#listeners.get(runId) ?? []) listener({ runId, ...from, turn, offset, text });
    };
    return (text, turn) => {
      if (text === '') return;
      if (turn !== told.turn) {
        flush();
        told = { turn, length: 0 };
      }
      // Before anything else happens, the last piece is passed on.
      if (piece === '') void Promise.resolve().then(flush);
      piece += text;
      if (piece.length >= Math.min(told.length + FIRST_CHARS, MAX_CHARS)) flush();
    };
  }
}
