/** What a client of the rich stream is told of a run's events: the story of one connection. */
import type { ChannelMessage, RichMessage } from '../generated/schemas.js';
import type { RunEvent } from '../run/events.js';
import type { Token } from '../run/tokens.js';

/** Characters of tokens that wait for their node's start to be told; what comes beyond is not told. */
const MAX_WAITING_CHARS = 64 * 1024;

type Message = ChannelMessage | RichMessage;

interface Start {
  readonly iteration: number | null;
  readonly attempt: number;
}

export class RichStory {
  readonly #runId: string;
  readonly #after: number;
  /** The nodes under way, by their step. */
  readonly #starts = new Map<number, Start>();
  #waiting: readonly Token[] = [];

  /** @param after revision of the last event that the client knows already */
  constructor(runId: string, after: number) {
    this.#runId = runId;
    this.#after = after;
  }

  /** The news of an event; of one that is known nothing, but for the run's end, which is told to everyone. */
  event(event: RunEvent): readonly Message[] {
    const beside = this.#beside(event);
    if (event.seq <= this.#after) return beside.filter((message) => isEnd(message) || message.event === 'token');
    const { seq, id, type, at, data, hash } = event;
    return [{ event: 'run_event', run_id: this.#runId, seq, id, type, at, data: { ...data }, hash }, ...beside];
  }

  /** The news of a token: it is told after its node's start. */
  token(token: Token): readonly Message[] {
    if (this.#isStarted(token)) return [tokenMessage(token)];
    const chars = this.#waiting.reduce((sum, { text }) => sum + text.length, token.text.length);
    if (chars <= MAX_WAITING_CHARS) this.#waiting = [...this.#waiting, token];
    return [];
  }

  #beside({ type, data }: RunEvent): readonly Message[] {
    const run = { run_id: this.#runId };
    switch (type) {
      case 'NodeStarted': {
        const iteration = data.iteration === 0 ? null : data.iteration;
        this.#starts.set(data.step, { iteration, attempt: data.attempt });
        return [{ event: 'node_start', ...run, node: data.node, iteration, score: null }, ...this.#waited()];
      }
      case 'NodeCompleted': {
        const { step, node, output } = data;
        const iteration = this.#starts.get(step)?.iteration ?? null;
        this.#starts.delete(step);
        this.#waiting = this.#waiting.filter((token) => token.step !== step);
        return [{ event: 'node_complete', ...run, node, iteration, score: 'score' in output ? output.score : null }];
      }
      case 'RunCompleted': {
        const { finalDraft, criticScore, iterationCount } = data;
        const result = { final_draft: finalDraft, critic_score: criticScore, iteration_count: iterationCount };
        return [{ event: 'run_complete', ...run, ...result }];
      }
      case 'RunFailed':
        return [{ event: 'run_failed', ...run, error: data.error }];
      default:
        return [];
    }
  }

  /** The tokens whose node's start is told now. */
  #waited(): readonly Message[] {
    const due = this.#waiting.filter((token) => this.#isStarted(token));
    this.#waiting = this.#waiting.filter((token) => !this.#isStarted(token));
    return due.map(tokenMessage);
  }

  #isStarted({ step, attempt }: Token): boolean {
    return (this.#starts.get(step)?.attempt ?? 0) >= attempt;
  }
}

/** Whether nothing follows: the service closes the connection. */
export function isEnd({ event }: Message): boolean {
  return event === 'run_complete' || event === 'run_failed';
}

function tokenMessage({ runId, node, step, attempt, turn, text }: Token): Message {
  return { event: 'token', run_id: runId, node, step, attempt, turn, text };
}
