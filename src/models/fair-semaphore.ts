/**
 * A semaphore that is fair between runs: no run waits longer because another calls more often. It is fair between
 * models too: one whose calls hang never takes the slots of all the others.
 */
import type { CancelSignal } from '../system/async/deadline.js';
import { callAborted, providerOf } from './port.js';

/** How a model is called at the moment. */
export interface ModelUse {
  readonly model: string;
  /** Calls under way. */
  readonly active: number;
  /** Calls that wait for a slot. */
  readonly waiting: number;
  /** Calls that may be under way at once. */
  readonly slots: number;
}

/** The run that asks for a slot, and the model it is for. */
export interface Caller {
  readonly runId: string;
  readonly model: string;
}

/** Share of the slots that the calls of one model may hold, even when no other call waits. */
const MODEL_SHARE = 3 / 4;

/** Callers bound its queue: of a run at most the nodes of its graph wait. */
export class FairSemaphore {
  readonly #slotsOfModel: number;
  readonly #maxCalls: ReadonlyMap<string, number>;
  #free: number;
  readonly #held = new Map<string, number>();
  /** Runs in the order of their next turn, each with its waiters in the order they came. No run is without waiters. */
  readonly #queues: Queues = new Map();

  /** @param maxCalls slots that the calls of a provider may hold, by its name, for providers with a bound of their own */
  constructor(slots: number, maxCalls: ReadonlyMap<string, number> = new Map()) {
    this.#free = slots;
    this.#slotsOfModel = Math.ceil(slots * MODEL_SHARE);
    this.#maxCalls = maxCalls;
  }

  /**
   * Waits for a slot: round-robin between runs, in order within a run and model. Every `enter` needs one `leave`.
   *
   * @throws {ModelFailed} `aborted`, at once, when the signal aborts before a slot is free
   */
  enter({ runId, model }: Caller, signal: CancelSignal): Promise<void> {
    if (signal.aborted) return Promise.reject(callAborted(signal));
    if (this.#hasRoom(model)) {
      this.#take(model);
      return Promise.resolve();
    }
    return new Promise((resolve, reject) => {
      const admit = (): void => {
        this.#take(model);
        signal.removeEventListener('abort', giveUp);
        resolve();
      };
      const waiter = { model, admit };
      const giveUp = (): void => {
        withdraw(this.#queues, runId, waiter);
        reject(callAborted(signal));
      };
      signal.addEventListener('abort', giveUp);
      this.#queues.set(runId, (this.#queues.get(runId) ?? new Set()).add(waiter));
    });
  }

  /** Releases a model's slot, or hands it to the next waiter. */
  leave(model: string): void {
    this.#free += 1;
    if (this.#heldBy(model) === 1) this.#held.delete(model);
    else this.#held.set(model, this.#heldBy(model) - 1);
    takeNext(this.#queues, (each) => this.#hasRoom(each))?.admit();
  }

  /** The models that hold a slot or wait for one. */
  uses(): readonly ModelUse[] {
    const waiting = new Map<string, number>();
    for (const queue of this.#queues.values()) {
      for (const { model } of queue) waiting.set(model, (waiting.get(model) ?? 0) + 1);
    }
    const models = [...new Set([...this.#held.keys(), ...waiting.keys()])];
    const slots = this.#slotsOfModel;
    return models.map((model) => ({ model, active: this.#heldBy(model), waiting: waiting.get(model) ?? 0, slots }));
  }

  #heldBy(model: string): number {
    return this.#held.get(model) ?? 0;
  }

  #take(model: string): void {
    this.#free -= 1;
    this.#held.set(model, this.#heldBy(model) + 1);
  }

  #hasRoom(model: string): boolean {
    return this.#free > 0 && this.#heldBy(model) < this.#slotsOfModel && this.#providerHasRoom(model);
  }

  /** Whether a model's provider holds fewer slots than its own bound. */
  #providerHasRoom(model: string): boolean {
    const provider = providerOf(model);
    const max = this.#maxCalls.get(provider);
    if (max === undefined) return true;
    let active = 0;
    for (const [each, count] of this.#held) if (providerOf(each) === provider) active += count;
    return active < max;
  }
}

interface Waiter {
  readonly model: string;
  admit(): void;
}

type Queues = Map<string, Set<Waiter>>;

/** Takes the first waiter with room, of the run whose turn it is; that run then goes to the end of the queue. */
function takeNext(queues: Queues, hasRoom: (model: string) => boolean): Waiter | undefined {
  for (const [runId, queue] of queues) {
    for (const waiter of queue) {
      if (!hasRoom(waiter.model)) continue;
      queue.delete(waiter);
      queues.delete(runId);
      if (queue.size > 0) queues.set(runId, queue);
      return waiter;
    }
  }
  return undefined;
}

function withdraw(queues: Queues, runId: string, waiter: Waiter): void {
  const queue = queues.get(runId);
  queue?.delete(waiter);
  if (queue?.size === 0) queues.delete(runId);
}
