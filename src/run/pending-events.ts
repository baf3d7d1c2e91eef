/** The facts that a decision collects for one append. The chart checks each before the next is decided. */
import type { ModelNaming } from '../graph/models-asked.js';
import { recordedName } from '../graph/models-asked.js';
import type { ItemsOf } from '../draft/items.js';
import type { System } from '../system/system.js';
import type { PromptInput, ToolName } from '../models/port.js';
import type { ModelPrice, PriceTable } from '../models/prices.js';
import type { Toolbox } from '../council/tools/tool.js';
import { headOf, laterOf } from '../eventsourcing/aggregate.js';
import type { ChildEndedData, RunRequestedData } from '../generated/schemas.js';
import type { RunEvent, RunFact } from './events.js';
import type { Chart, RunSnapshot } from './chart/machine.js';
import type { FrontierNode, RunState } from './state.js';
import type { RenderedPrompt } from '../council/prompt.js';

/** What a decision depends on besides the run's state. */
export interface DecisionContext {
  readonly at: string;
  readonly instanceId: string;
  /** The full name of a model that the graph of the run names (`recordedName`). */
  readonly fullName: ModelNaming;
  /** Whether a node that starts now can use a tool. */
  readonly isToolAvailable: (tool: ToolName) => boolean;
  /** The price of a model by its full name, or null if it has none. */
  readonly priceOf: (fullName: string) => ModelPrice | null;
  /** SHA-256 of the table of prices, recorded with a new run. */
  readonly pricesHash: string;
  readonly sha256: (text: string) => string;
  /** The id of a run that a council starts: the UUIDv5 of a name in the namespace of its parent's id. */
  readonly childId: (parent: string, name: string) => string;
  /** The items of a draft. */
  readonly itemsOf: ItemsOf;
}

/** The context of a decision at the current time. */
export function decisionContext({
  system,
  instanceId,
  model,
  tools,
  prices,
  drafts: { itemsOf },
}: {
  readonly system: Pick<System, 'now' | 'sha256' | 'uuidOf'>;
  readonly instanceId: string;
  readonly model: { readonly fullName: ModelNaming };
  readonly tools: Toolbox;
  readonly prices: Pick<PriceTable, 'hash' | 'priceOf'>;
  readonly drafts: Pick<DraftParser, 'itemsOf'>;
}): DecisionContext {
  const { sha256, uuidOf: childId } = system;
  const fullName = (name: string | undefined): string => recordedName(name, model.fullName);
  const { isAvailable: isToolAvailable } = tools;
  const priceOf = (name: string): ModelPrice | null => prices.priceOf(name);
  return {
    at: system.now(),
    instanceId,
    fullName,
    isToolAvailable,
    priceOf,
    pricesHash: prices.hash,
    sha256,
    childId,
    itemsOf,
  };
}

/** Reads drafts. Its parser is loaded when a council first needs it. */
export interface DraftParser {
  load(): Promise<void>;
  /** Call it after `load`. */
  readonly itemsOf: ItemsOf;
}

/** The facts for one append; `run` is the state after them. */
export class PendingEvents {
  readonly chart: Chart;
  /** The snapshot before the facts; of a new run, after its first event. */
  readonly from: RunSnapshot;
  /** The run before the facts, or null if they begin it. */
  readonly before: RunState | null;
  /** Its time is never before the run's last event: clocks of instances differ. */
  readonly context: DecisionContext;
  /** Assignments of the started attempts, by call key, so that the actor need not derive them again. */
  readonly assignments = new Map<string, Assignment>();
  /** The ends of the runs of its councils, which are recorded before the run itself ends. */
  readonly ends: readonly ChildEndedData[];
  readonly #facts: RunFact[];
  #snapshot: RunSnapshot;

  /** @param first the fact that begins the run, if `snapshot` is the one after it */
  constructor(
    chart: Chart,
    snapshot: RunSnapshot,
    { ends = [], ...context }: DecisionContext & { readonly ends?: PendingEvents['ends'] },
    first: RunFact | null = null,
  ) {
    const { run } = snapshot.context;
    this.chart = chart;
    this.from = snapshot;
    this.before = first === null ? run : null;
    this.#facts = first === null ? [] : [first];
    this.#snapshot = snapshot;
    this.ends = ends;
    this.context = { ...context, at: laterOf(context.at, run.head.at) };
  }

  /** Begins a run with its request. */
  static ofNewRun(chart: Chart, data: RunRequestedData, context: DecisionContext): PendingEvents {
    const first: RunFact = { type: 'RunRequested', data };
    const snapshot = chart.first({ seq: 0, id: '', at: context.at, hash: '', ...first });
    return new PendingEvents(chart, snapshot, context, first);
  }

  get run(): RunState {
    return this.snapshot.context.run;
  }

  /** The snapshot after the facts; the state's last event has neither id nor hash yet. */
  get snapshot(): RunSnapshot {
    return this.#snapshot;
  }

  get facts(): readonly RunFact[] {
    return this.#facts;
  }

  /** Adds a fact. @throws {TransitionRefused} when the chart does not allow it */
  write(fact: RunFact): void {
    const { seq } = this.run.head;
    this.#snapshot = this.chart.next(this.#snapshot, { seq: seq + 1, id: '', at: this.context.at, hash: '', ...fact });
    this.#facts.push(fact);
  }

  /** The snapshot after the facts, with the id and hash of the last event as it is recorded. */
  snapshotAt(last: RunEvent | undefined): RunSnapshot {
    const { run } = this;
    if (last?.seq !== run.head.seq)
      throw new Error(`Event ${last?.seq} does not end the facts decided up to ${run.head.seq}`);
    return { ...this.#snapshot, context: { run: { ...run, head: headOf(last) } } };
  }
}

/** The prompt that an attempt sends to its model. */
export interface Assignment {
  readonly promptInput: PromptInput;
  /** The texts sent to the model, rendered from `promptInput`. */
  readonly rendered: RenderedPrompt;
}

/** Key of one attempt of a step, unique in its run. */
export function callOf({ step, attempt }: Pick<FrontierNode, 'step' | 'attempt'>): string {
  return `${step}.${attempt}`;
}
