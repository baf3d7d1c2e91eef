/** Drafts and answers while nodes and members write them. */
import type { RunEvent } from '../../../client/run-events.js';
import { isTerminal } from '../../../client/run-events.js';
import type { LiveMessage } from '../../../client/tokens.js';

/** A draft that a node is writing, or an answer of a member. */
export interface Writing {
  readonly node: string;
  /** The member that writes, or null if the node does. */
  readonly member: string | null;
  readonly step: number;
  readonly attempt: number;
  readonly turn: number;
  readonly text: string;
  /** Number of characters before the text that this page did not receive. */
  readonly from: number;
}

/** Members have steps of their own, so what they write at once stays apart. */
export class Writings {
  /** By step. */
  readonly #writing = new Map<number, Writing>();
  /** The last ended attempt of each step: later tokens of it are ignored. */
  readonly #endedAttempts = new Map<number, number>();
  /** The steps of members, by the number of their panel, rank or jury. */
  readonly #memberSteps = new Map<number, readonly number[]>();

  get all(): readonly Writing[] {
    return [...this.#writing.values()];
  }

  /** Adds a piece of text. @returns whether it belongs to an attempt that has not ended */
  add(message: Extract<LiveMessage, { event: 'token' }>): boolean {
    const { node, member = null, step, attempt, turn, offset: from, text } = message;
    if (attempt <= (this.#endedAttempts.get(step) ?? 0)) return false;
    const known = this.#writing.get(step);
    const isOfIt = known !== undefined && known.attempt === attempt && known.turn === turn;
    const isNext = isOfIt && from === known.from + known.text.length;
    const begun = { node, member, step, attempt, turn, from, text };
    this.#writing.set(step, isNext ? { ...known, text: known.text + text } : begun);
    return true;
  }

  /** Removes what the attempts wrote that an event ends. */
  end(event: RunEvent): void {
    switch (event.type) {
      case 'NodeStarted': {
        const { step, panelStep } = event.data;
        if (panelStep !== undefined) this.#memberSteps.set(panelStep, [...this.#stepsOf(panelStep), step]);
        return;
      }
      case 'NodeCompleted':
      case 'NodeFailed':
        return this.#endAttempt(event.data.step, event.data.attempt);
      case 'PanelClosed':
        for (const step of this.#stepsOf(event.data.panelStep)) this.#endAttempt(step, Infinity);
        return;
      default:
        if (isTerminal(event)) this.#writing.clear();
    }
  }

  #stepsOf(panelStep: number): readonly number[] {
    return this.#memberSteps.get(panelStep) ?? [];
  }

  #endAttempt(step: number, attempt: number): void {
    this.#endedAttempts.set(step, attempt);
    this.#writing.delete(step);
  }
}
