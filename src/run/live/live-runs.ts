/** The runs that have an actor in this process. */
import type { RunState } from '../state.js';
import type { RunActor } from './actor.js';

export class LiveRuns {
  readonly #actors = new Map<string, RunActor>();

  get size(): number {
    return this.#actors.size;
  }

  actor(runId: string): RunActor | null {
    return this.#actors.get(runId) ?? null;
  }

  has(runId: string): boolean {
    return this.#actors.has(runId);
  }

  /** The state after the last adopted event, or null if the run is not live here. */
  state(runId: string): RunState | null {
    return this.#actors.get(runId)?.run ?? null;
  }

  all(): readonly RunActor[] {
    return [...this.#actors.values()];
  }

  add(actor: RunActor): void {
    this.#actors.set(actor.run.runId, actor);
  }

  /** @returns whether it was live here */
  remove(runId: string): boolean {
    return this.#actors.delete(runId);
  }
}
