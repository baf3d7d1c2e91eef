/** Streams drafts to the current listeners while the model writes them. It stores and records nothing. */
import type { TokenSink } from '../../council/step.js';
import type { Logger } from '../../system/logger.js';
import { Broadcast } from '../../system/async/broadcast.js';

/** A piece of a draft. A node's next attempt restarts its draft, and so does a later turn of the same attempt. */
export interface Token {
  readonly runId: string;
  readonly node: string;
  /** The member of a panel that answers; absent: the node itself. */
  readonly member?: string;
  readonly step: number;
  readonly attempt: number;
  /** From 1. Grows when the text sent so far does not belong to the draft (thoughts, words before tool calls). */
  readonly turn: number;
  /** UTF-16 code units of the turn before this piece: a late listener sees how much it has missed. */
  readonly offset: number;
  readonly text: string;
}

/** Called while the model is answering: must not block and must bound what it keeps. A listener that throws is removed. */
export type TokenListener = (token: Token) => void;

/** Most listeners of all runs together. A further one is refused, and its client gets no tokens. */
const MAX_LISTENERS = 10_000;

/**
 * A text that arrives at once is split: the first piece has `FIRST_CHARS` characters, each next one as many as all before
 * it, up to `MAX_CHARS`. A short draft still appears piece by piece, and a long one costs a listener few messages.
 */
const FIRST_CHARS = 16;
const MAX_CHARS = 8 * 1024;

export interface TokenBusDeps {
  readonly logger: Pick<Logger, 'error'>;
}

export class TokenBus {
  readonly #deps: TokenBusDeps;
  readonly #audiences = new Map<string, Broadcast<Token>>();
  #count = 0;

  constructor(deps: TokenBusDeps) {
    this.#deps = deps;
  }

  /**
   * Listens to a run's tokens from its next call to a model; if the run has a listener already, from the next token.
   *
   * @returns a function that removes the listener, or null if there are too many listeners
   */
  subscribe(runId: string, listener: TokenListener): (() => void) | null {
    if (this.#count >= MAX_LISTENERS) return null;
    const audience = this.#audiences.get(runId) ?? new Broadcast<Token>();
    this.#audiences.set(runId, audience);
    this.#count += 1;
    let isGone = false;
    const leave = (): void => {
      if (isGone) return;
      isGone = true;
      this.#count -= 1;
      stopListening();
      if (audience.size === 0) this.#audiences.delete(runId);
    };
    // An error of a listener must not fail the call to the model.
    const stopListening = audience.listen((token) => {
      try {
        listener(token);
      } catch (error) {
        leave();
        this.#deps.logger.error({ runId, err: error }, 'tokens: a listener failed and was removed');
      }
    });
    return leave;
  }

  /**
   * A receiver for the text of a call to a model, or null if the run has no listeners: then the answer need not be
   * streamed.
   */
  sinkFor(runId: string, from: Pick<Token, 'node' | 'step' | 'attempt' | 'member'>): TokenSink | null {
    if (!this.#audiences.has(runId)) return null;
    let sent = { turn: 0, length: 0 };
    let piece = '';
    const flush = (): void => {
      const text = piece;
      if (text === '') return;
      const { turn, length: offset } = sent;
      piece = '';
      sent = { turn, length: offset + text.length };
      this.#audiences.get(runId)?.deliver({ runId, ...from, turn, offset, text });
    };
    return (text, turn) => {
      if (text === '') return;
      if (turn !== sent.turn) {
        flush();
        sent = { turn, length: 0 };
      }
      // Passes on the last piece in the next microtask, before any other message is handled.
      if (piece === '') void Promise.resolve().then(flush);
      piece += text;
      if (piece.length >= Math.min(sent.length + FIRST_CHARS, MAX_CHARS)) flush();
    };
  }
}
