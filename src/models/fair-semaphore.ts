/**
 * A semaphore that is fair between runs: no run waits longer because another calls more often. It is fair between
 * models too: one whose calls hang never takes the slots of all the others.
 */
import { callAborted } from './port.js';

export interface FairSemaphore {
  /**
   * Waits for a slot: round-robin between runs, in order within a run and model. Every `enter` needs one `leave`.
   *
   * @throws {ModelFailed} `aborted`, at once, when the signal aborts before a slot is free
   */
  enter(caller: Caller, signal: AbortSignal): Promise<void>;
  /** Releases a model's slot, or hands it to the next waiter. */
  leave(model: string): void;
  /** How many wait. */
  waiting(): number;
  /** The models that hold a slot or wait for one. */
  uses(): readonly ModelUse[];
}

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

/** Share of the slots that the calls of one model may hold, even when nobody else waits. */
const MODEL_SHARE = 3 / 4;

/**
 * A semaphore with this many slots. Callers bound its queue: of a run at most the nodes of its graph wait.
 *
 * @param maxCalls slots that the calls of a provider may hold, by its name, for providers with a bound of their own
 */
export function fairSemaphore(slots: number, maxCalls: ReadonlyMap<string, number> = new Map()): FairSemaphore {
  const slotsOfModel = Math.ceil(slots * MODEL_SHARE);
  let free = slots;
  const held = new Map<string, number>();
  /** Runs in the order of their next turn, each with its waiters in the order they came. No run is without waiters. */
  const lines: Lines = new Map();

  const heldBy = (model: string): number => held.get(model) ?? 0;
  const hasRoom = (model: string): boolean =>
    free > 0 && heldBy(model) < slotsOfModel && providerHasRoom(held, model, maxCalls);
  const take = (model: string): void => {
    free -= 1;
    held.set(model, heldBy(model) + 1);
  };
  const giveBack = (model: string): void => {
    free += 1;
    if (heldBy(model) === 1) held.delete(model);
    else held.set(model, heldBy(model) - 1);
  };

  return {
    enter({ runId, model }, signal) {
      if (signal.aborted) return Promise.reject(callAborted(signal));
      if (hasRoom(model)) {
        take(model);
        return Promise.resolve();
      }
      return new Promise((resolve, reject) => {
        const waiter: Waiter = {
          model,
          admit() {
            take(model);
            signal.removeEventListener('abort', giveUp);
            resolve();
          },
        };
        const giveUp = (): void => {
          withdraw(lines, runId, waiter);
          reject(callAborted(signal));
        };
        signal.addEventListener('abort', giveUp, { once: true });
        lines.set(runId, (lines.get(runId) ?? new Set()).add(waiter));
      });
    },
    leave(model) {
      giveBack(model);
      takeNext(lines, hasRoom)?.admit();
    },
    waiting: () => [...lines.values()].reduce((sum, line) => sum + line.size, 0),
    uses() {
      const waiting = new Map<string, number>();
      for (const line of lines.values()) {
        for (const { model } of line) waiting.set(model, (waiting.get(model) ?? 0) + 1);
      }
      const models = [...new Set([...held.keys(), ...waiting.keys()])];
      const slots = slotsOfModel;
      return models.map((model) => ({ model, active: heldBy(model), waiting: waiting.get(model) ?? 0, slots }));
    },
  };
}

/** Whether a model's provider holds fewer slots than its own bound. */
function providerHasRoom(
  held: ReadonlyMap<string, number>,
  model: string,
  maxCalls: ReadonlyMap<string, number>,
): boolean {
  const provider = model.slice(0, model.indexOf('/') + 1);
  const max = maxCalls.get(provider.slice(0, -1));
  if (max === undefined) return true;
  let active = 0;
  for (const [each, count] of held) if (each.startsWith(provider)) active += count;
  return active < max;
}

interface Waiter {
  readonly model: string;
  admit(): void;
}

type Lines = Map<string, Set<Waiter>>;

/** Takes the first waiter with room, of the run whose turn it is; that run then goes to the end of the queue. */
function takeNext(lines: Lines, hasRoom: (model: string) => boolean): Waiter | undefined {
  for (const [runId, line] of lines) {
    for (const waiter of line) {
      if (!hasRoom(waiter.model)) continue;
      line.delete(waiter);
      lines.delete(runId);
      if (line.size > 0) lines.set(runId, line);
      return waiter;
    }
  }
  return undefined;
}

function withdraw(lines: Lines, runId: string, waiter: Waiter): void {
  const line = lines.get(runId);
  line?.delete(waiter);
  if (line?.size === 0) lines.delete(runId);
}
