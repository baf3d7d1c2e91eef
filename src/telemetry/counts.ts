/** Counts what this instance does: the events that it appends to runs, its calls to models, its appends to the log. */
import type { NodeCompletedData, NodeFailedData } from '../generated/schemas.js';
import type { EndedCall } from '../models/bounded.js';
import type { OwnAppend } from '../run/runs/states.js';
import type { RunEvent } from '../run/events.js';
import { sumOfDollars } from '../system/dollars.js';
import { ModelLabels } from './model-labels.js';
import { Distribution, Tally } from './tally.js';

const HOUR = 3_600;
const DAY = 24 * HOUR;

// Upper bounds of buckets, in seconds.
const CALL_SECONDS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 60, 120, 300];
const RUN_SECONDS = [0.1, 0.5, 1, 5, 15, 30, 60, 120, 300, 600, 1_800, HOUR, 6 * HOUR, DAY];
const HUMAN_SECONDS = [10, 60, 300, 900, HOUR, 4 * HOUR, 12 * HOUR, DAY, 3 * DAY, 7 * DAY];
const APPEND_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5];

export class Counts {
  readonly labels: ModelLabels;
  readonly runsStarted = new Tally();
  /** By status. */
  readonly runsEnded = new Tally();
  /** By status. */
  readonly runSeconds = new Distribution(RUN_SECONDS);
  /** By the role of the node. */
  readonly nodeSeconds = new Distribution(CALL_SECONDS);
  /** By the decision. */
  readonly pauseSeconds = new Distribution(HUMAN_SECONDS);
  /** By provider, model and outcome. */
  readonly modelCalls = new Tally();
  /** By provider and model. */
  readonly modelCallSeconds = new Distribution(CALL_SECONDS);
  // By provider and model.
  readonly inputTokens = new Tally();
  readonly cachedInputTokens = new Tally();
  readonly outputTokens = new Tally();
  readonly reasoningTokens = new Tally();
  readonly costUsd = new Tally((sum, amount) => sumOfDollars([sum, amount]));
  readonly appendSeconds = new Distribution(APPEND_SECONDS);

  /** @param providers names of the configured providers, the default first */
  constructor(providers: readonly string[]) {
    this.labels = new ModelLabels(providers);
    this.runsStarted.add(0);
    for (const status of ['completed', 'failed']) this.runsEnded.add(0, status);
  }

  /** Counts an append of this instance to a run, once it is acknowledged. */
  onRunAppended(append: OwnAppend): void {
    for (const event of append.events) this.#count(event, append);
  }

  /** Counts an ended call to a model. */
  onCallEnded({ model, failure, durationMs }: EndedCall): void {
    const [provider, name] = failure === null ? this.labels.onAnswered(model) : this.labels.of(model);
    this.modelCalls.add(1, provider, name, failure ?? 'answered');
    this.modelCallSeconds.observe(durationMs / 1_000, provider, name);
  }

  /** Counts an acknowledged append to the log. */
  onAppended(durationMs: number): void {
    this.appendSeconds.observe(durationMs / 1_000);
  }

  #count(event: RunEvent, { before, after }: OwnAppend): void {
    switch (event.type) {
      case 'RunRequested':
        this.runsStarted.add(1);
        break;
      case 'NodeCompleted':
        this.nodeSeconds.observe(event.data.durationMs / 1_000, after.plan.node(event.data.node).role);
        this.#countUsage(event.data);
        break;
      case 'NodeFailed':
        this.#countUsage(event.data);
        break;
      case 'GateDecided':
        if (before?.phase.status !== 'paused') break;
        this.pauseSeconds.observe(secondsBetween(before.phase.pause.pausedAt, event.at), event.data.action);
        break;
      case 'RunCompleted':
      case 'RunFailed': {
        const status = event.type === 'RunCompleted' ? 'completed' : 'failed';
        this.runsEnded.add(1, status);
        this.runSeconds.observe(secondsBetween(after.createdAt, event.at), status);
        break;
      }
      default:
      // Other events change no figure.
    }
  }

  /** Adds what is known of an attempt's usage. */
  #countUsage({ model, usage, costUsd }: NodeCompletedData | NodeFailedData): void {
    if (model === undefined) return;
    const label = this.labels.of(model);
    if (typeof costUsd === 'number') this.costUsd.add(costUsd, ...label);
    if (usage === undefined) return;
    this.inputTokens.add(usage.inputTokens ?? 0, ...label);
    this.outputTokens.add(usage.outputTokens ?? 0, ...label);
    if (typeof usage.cachedInputTokens === 'number') this.cachedInputTokens.add(usage.cachedInputTokens, ...label);
    if (typeof usage.reasoningTokens === 'number') this.reasoningTokens.add(usage.reasoningTokens, ...label);
  }
}

/** The seconds between two times, at least 0: the clocks of two instances may differ. */
export function secondsBetween(from: string, to: string): number {
  return Math.max(0, Date.parse(to) - Date.parse(from)) / 1_000;
}
