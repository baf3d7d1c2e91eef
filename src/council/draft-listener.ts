/** Passes a draft on while the model writes it. */
import type { ModelRequest } from '../models/port.js';
import type { CancelSignal } from '../system/async/cancellation.js';
import type { ThoughtFilter } from '../models/thoughts.js';
import { thoughtFilter } from '../models/thoughts.js';

/** Receives pieces of a draft. `turn` counts from 1; when it increases, the text of earlier turns is not part of the draft. */
export type TokenSink = (text: string, turn: number) => void;

interface ListenedStep {
  /** Returns the listener to a draft while the model writes it, or null; called before each call to the model. */
  readonly tokenSink?: () => TokenSink | null;
  readonly signal: CancelSignal;
}

/** Passes prose on without thoughts; nothing of JSON answers or of an aborted attempt. */
export function draftListener({ tokenSink, signal }: ListenedStep): (request: ModelRequest) => DraftListener | null {
  let turn = 0;
  return ({ answer }) => {
    const sink = answer === 'draft' ? (tokenSink?.() ?? null) : null;
    if (sink === null) return null;
    const nextTurn = (): number => (turn += 1);
    const newFilter = (): ThoughtFilter => {
      // The text so far is not part of the draft: it came before tool calls, or in an answer that broke off.
      nextTurn();
      const emit = (text: string): void => {
        if (!signal.aborted) sink(text, turn);
      };
      return thoughtFilter({ emit, retract: nextTurn });
    };
    let filter = newFilter();
    let hasTokens = false;
    return {
      hooks: {
        onToken(text) {
          hasTokens = true;
          filter.push(text);
        },
        onStart() {
          if (hasTokens) filter = newFilter();
          hasTokens = false;
        },
      },
      end: () => filter.end(),
    };
  };
}

interface DraftListener {
  readonly hooks: Required<Pick<ModelRequest, 'onToken' | 'onStart'>>;
  /** Ends the answer. */
  readonly end: () => void;
}
