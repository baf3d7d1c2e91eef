/** Facts being written down: each is checked against the chart before the next one is thought of. */
import type { RunEvent, RunFact } from './events.js';
import type { Chart, RunSnapshot } from './machine.js';
import type { RunState } from './state.js';

/** What a decision needs to know of the world. */
export interface DecisionScene {
  readonly at: string;
  readonly instanceId: string;
  readonly defaultModel: string;
  readonly sha256: (text: string) => string;
}

/** The facts of one append in the making; `run` is the state they add up to. */
export class Minutes {
  readonly facts: RunFact[] = [];
  readonly scene: DecisionScene;
  readonly #chart: Chart;
  #snapshot: RunSnapshot;

  constructor(chart: Chart, snapshot: RunSnapshot, scene: DecisionScene) {
    this.#chart = chart;
    this.#snapshot = snapshot;
    this.scene = scene;
  }

  get run(): RunState {
    return this.#snapshot.context.run;
  }

  write(fact: RunFact): void {
    const event: RunEvent = { ...fact, seq: this.run.seq + 1, id: '', at: this.scene.at, hash: '' };
    this.#snapshot = this.#chart.next(this.#snapshot, event);
    this.facts.push(fact);
  }
}
