/** Counts what this instance does: the events that it appends to runs, its calls to models, its appends to the log. */
import type { NodeCompletedData, NodeFailedData } from '../generated/schemas.js';
import type { EndedCall } from '../models/bounded.js';
import type { OwnAppend } from '../run/runs/states.js';
import type { RunEvent } from '../run/events.js';
import { sumOfDollars } from '../system/dollars.js';

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

// Numbers that are cheap to add to while runs work, and are read when the metrics are requested.

/** The values of the labels, in the order of their names. */
export type Labels = readonly string[];

/** A value with its labels. */
export interface Labelled<Value> {
  readonly labels: Labels;
  readonly value: Value;
}

/** Sums by labels. */
export class Tally {
  readonly #sums = new Map<string, { readonly labels: Labels; value: number }>();
  readonly #plus: (sum: number, amount: number) => number;

  /** @param plus default: the sum of binary fractions */
  constructor(plus = (sum: number, amount: number): number => sum + amount) {
    this.#plus = plus;
  }

  add(amount: number, ...labels: Labels): void {
    const key = labels.join('\n');
    const sum = this.#sums.get(key);
    if (sum === undefined) this.#sums.set(key, { labels, value: amount });
    else sum.value = this.#plus(sum.value, amount);
  }

  all(): readonly Labelled<number>[] {
    return [...this.#sums.values()];
  }
}

/** How observed values spread over buckets. */
export interface Spread {
  /** Observed values in each bucket: at most its bound, and above that of the bucket before. The last has no bound. */
  readonly counts: readonly number[];
  readonly sum: number;
}

/** Distributions by labels, over buckets with these upper bounds in ascending order. */
export class Distribution {
  readonly bounds: readonly number[];
  readonly #spreads = new Map<string, { readonly labels: Labels; readonly value: { counts: number[]; sum: number } }>();

  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
  }

  observe(value: number, ...labels: Labels): void {
    const key = labels.join('\n');
    let spread = this.#spreads.get(key);
    if (spread === undefined) {
      spread = { labels, value: { counts: Array.from({ length: this.bounds.length + 1 }, () => 0), sum: 0 } };
      this.#spreads.set(key, spread);
    }
    const { counts } = spread.value;
    let bucket = 0;
    while (bucket < this.bounds.length && value > (this.bounds[bucket] ?? Number.POSITIVE_INFINITY)) bucket += 1;
    counts[bucket] = (counts[bucket] ?? 0) + 1;
    spread.value.sum += value;
  }

  all(): readonly Labelled<Spread>[] {
    return [...this.#spreads.values()];
  }
}

// Labels for models: bounded, because clients may name any model.

/** Models that get a label of their own. Each costs about 20 series. */
const MAX_MODELS = 100;
/** Longest name of a model with a label of its own, in characters. A blueprint may hold one of 256 KiB. */
const MAX_NAME = 200;
/** The label of all other models. */
const OTHER = 'other';

/** The provider and the model, for the labels `provider` and `model`. */
export type ModelLabel = readonly [provider: string, model: string];

export class ModelLabels {
  readonly #providers: readonly string[];
  readonly #answered = new Map<string, ModelLabel>();

  /** @param providers names of the configured providers, the default first */
  constructor(providers: readonly string[]) {
    this.#providers = providers;
  }

  /** Gives a model that has answered its own label, while there is room. */
  onAnswered(name: string): ModelLabel {
    const label = this.of(name);
    if (label[1] !== OTHER || this.#answered.size >= MAX_MODELS) return label;
    const [provider] = label;
    const model = name.startsWith(`${provider}/`) ? name.slice(provider.length + 1) : name;
    if (model.length > MAX_NAME) return label;
    const own = [provider, model] as const;
    this.#answered.set(name, own);
    return own;
  }

  /** The models with a label of their own. */
  own(): readonly ModelLabel[] {
    return [...this.#answered.values()];
  }

  /** @param name `provider/model`, or a model of the only provider */
  of(name: string): ModelLabel {
    return this.#answered.get(name) ?? [this.#providerOf(name), OTHER];
  }

  #providerOf(name: string): string {
    const provider = name.slice(0, Math.max(0, name.indexOf('/')));
    return this.#providers.includes(provider) ? provider : (this.#providers[0] ?? OTHER);
  }
}
