/** The messages of the rich stream: a run's events and tokens as one client receives them. */
import type { ChannelMessage, RichMessage, RunCompletedData } from '../generated/schemas.js';
import type { RunEvent } from '../run/events.js';
import type { Token } from '../run/runs/tokens.js';

/** Most characters of tokens held back until the start of their node is sent; further tokens are dropped. */
const MAX_WAITING_CHARS = 64 * 1024;

export type Message = ChannelMessage | RichMessage;

interface Start {
  readonly iteration: number | null;
  readonly attempt: number;
  /** Number of the panel of a member's step. */
  readonly panelStep: number | undefined;
}

/** Translates a run's events and tokens for one client. */
export class RichMessages {
  readonly #runId: string;
  readonly #after: number;
  /** The running nodes by step. */
  readonly #starts = new Map<number, Start>();
  #waiting: readonly Token[] = [];

  /** @param after revision of the last event that the client knows */
  constructor(runId: string, after: number) {
    this.#runId = runId;
    this.#after = after;
  }

  /** The messages for an event. For an event that the client knows, only the run's end, which every client gets. */
  event(event: RunEvent): readonly Message[] {
    const derived = this.#derived(event);
    if (event.seq <= this.#after) return derived.filter((message) => isEnd(message) || message.event === 'token');
    return [eventMessage(event, this.#runId), ...derived];
  }

  /** The messages for a token: none until the start of its node is sent. */
  token(token: Token): readonly Message[] {
    if (this.#isStarted(token)) return [tokenMessage(token, this.#runId)];
    const chars = this.#waiting.reduce((sum, { text }) => sum + text.length, token.text.length);
    if (chars <= MAX_WAITING_CHARS) this.#waiting = [...this.#waiting, token];
    return [];
  }

  #derived({ type, data }: RunEvent): readonly Message[] {
    const run = { run_id: this.#runId };
    switch (type) {
      case 'NodeStarted': {
        const { step, attempt, panelStep } = data;
        const iteration = data.iteration === 0 ? null : data.iteration;
        this.#starts.set(step, { iteration, attempt, panelStep });
        return [{ event: 'node_start', ...run, ...authorOf(data), iteration, score: null }, ...this.#takeWaiting()];
      }
      case 'NodeCompleted': {
        const { step, output } = data;
        const iteration = this.#starts.get(step)?.iteration ?? null;
        this.#end(step);
        const score = 'score' in output ? output.score : null;
        return [{ event: 'node_complete', ...run, ...authorOf(data), iteration, score }];
      }
      case 'PanelClosed': {
        const steps = [...this.#starts].filter(([, { panelStep }]) => panelStep === data.panelStep);
        for (const [step] of steps) this.#end(step);
        return [];
      }
      case 'RunCompleted':
        return [completeMessage(data, this.#runId)];
      case 'RunFailed':
        return [{ event: 'run_failed', ...run, error: data.error }];
      default:
        // Other events have no message besides the event itself.
        return [];
    }
  }

  /** Forgets a step, and the tokens that wait for its start. */
  #end(step: number): void {
    this.#starts.delete(step);
    this.#waiting = this.#waiting.filter((token) => token.step !== step);
  }

  /** Removes and returns the tokens whose node has started. */
  #takeWaiting(): readonly Message[] {
    const due = this.#waiting.filter((token) => this.#isStarted(token));
    this.#waiting = this.#waiting.filter((token) => !this.#isStarted(token));
    return due.map((token) => tokenMessage(token, this.#runId));
  }

  #isStarted({ step, attempt }: Token): boolean {
    return (this.#starts.get(step)?.attempt ?? 0) >= attempt;
  }
}

// All recipients share the messages that may hold a draft, so that the service encodes each once.

const eventMessage = madeOnce(({ seq, id, type, at, data, hash }: RunEvent, runId: string): Message => {
  return { event: 'run_event', run_id: runId, seq, id, type, at, data: { ...data }, hash };
});

const completeMessage = madeOnce((data: RunCompletedData, runId: string): Message => {
  const { finalDraft, criticScore, iterationCount } = data;
  const result = { final_draft: finalDraft, critic_score: criticScore, iteration_count: iterationCount };
  return { event: 'run_complete', run_id: runId, ...result };
});

const tokenMessage = madeOnce((token: Token, runId: string): Message => {
  const { step, attempt, turn, offset, text } = token;
  return { event: 'token', run_id: runId, ...authorOf(token), step, attempt, turn, offset, text };
});

/** The node and, of a member of a panel, rank or jury, its id. */
function authorOf({ node, member }: Pick<Token, 'node' | 'member'>): { node: string; member?: string } {
  return { node, ...(member !== undefined && { member }) };
}

/** The same function, which returns the same message for the same object. */
function madeOnce<From extends object>(make: (from: From, runId: string) => Message): typeof make {
  const made = new WeakMap<From, Message>();
  return (from, runId) => {
    const message = made.get(from) ?? make(from, runId);
    made.set(from, message);
    return message;
  };
}

/** Whether this is the run's last message, after which the service closes the socket. */
export function isEnd({ event }: Message): boolean {
  return event === 'run_complete' || event === 'run_failed';
}
