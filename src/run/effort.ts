/** What a run has cost: calls to models, their tokens, and time in pauses. A fork starts from zero. */
import type {
  CallReservedData,
  CallUsage,
  ModelTotals,
  NodeCompletedData,
  NodeFailedData,
  NodeStartedData,
  NodeUsage,
  RunTotals,
  ToolCalledData,
} from '../generated/schemas.js';
import type { ExactDollars } from '../system/dollars.js';
import { dollarsOf, exactDollars } from '../system/dollars.js';
import type { RunEvent } from './events.js';

/** The calls to one model. */
export interface ModelEffort {
  readonly model: string;
  /**
   * Attempts of nodes, and one more for each further call of an attempt: after a round of tool calls, after an unusable
   * critique, or made again by itself.
   */
  readonly calls: number;
  /** Attempts after the first of their step. */
  readonly repeatedCalls: number;
  /** Calls whose tokens are in the sums. The others failed, were lost, are in flight, or the provider reported no usage. */
  readonly meteredCalls: number;
  /** Sum over the metered calls, or null if there are none. */
  readonly inputTokens: number | null;
  readonly outputTokens: number | null;
  /** Of the input tokens, those read from a provider's cache, or null if no provider reports them. */
  readonly cachedInputTokens: number | null;
  /** Of the output tokens, those of reasoning, or null if no provider reports them. */
  readonly reasoningTokens: number | null;
  /** Calls whose cost is in the sum. */
  readonly pricedCalls: number;
  /** Sum over the priced calls, or null if there are none. */
  readonly cost: ExactDollars | null;
}

/** An attempt that has not ended. */
interface OpenAttempt {
  readonly step: number;
  readonly model: string;
  /** Rounds of tool calls so far, or null in a run with a budget, which records the usage of each call. */
  readonly rounds: number | null;
  /** Number of the panel, of a member's attempt. */
  readonly panelStep: number | undefined;
}

export interface RunEffort {
  /** In the order of their first calls. */
  readonly models: readonly ModelEffort[];
  readonly open: readonly OpenAttempt[];
  /** Time in pauses that have ended, in milliseconds. */
  readonly waitedMs: number;
}

export const NO_EFFORT: RunEffort = { models: [], open: [], waitedMs: 0 };

/**
 * The effort after an event.
 *
 * @param pausedAt start of the pause that was open before the event, ISO 8601, or null if no pause was open
 */
export function effortAfter(effort: RunEffort, event: RunEvent, pausedAt: string | null): RunEffort {
  switch (event.type) {
    case 'RunRequested':
      return NO_EFFORT;
    case 'NodeStarted':
      return started(effort, event.data);
    case 'CallReserved':
      return callReserved(effort, event.data);
    case 'ToolCalled':
      return toolCalled(effort, event.data);
    case 'NodeCompleted':
    case 'NodeFailed':
      return ended(effort, event.data);
    case 'ChildEnded':
      return { ...effort, models: event.data.usage.byModel.reduce(withChild, effort.models) };
    case 'PanelClosed': {
      // The calls of discarded members have no end.
      const { panelStep } = event.data;
      return { ...effort, open: effort.open.filter((each) => each.panelStep !== panelStep) };
    }
    case 'GateDecided':
    case 'RunFailed':
      return pausedAt === null ? effort : waited(effort, pausedAt, event.at);
    default:
      // Other events cost nothing.
      return effort;
  }
}

/** The calls of a run and of one that its council has started. */
function withChild(models: RunEffort['models'], child: ModelTotals): RunEffort['models'] {
  const { model, costUsd = null, toldCalls: meteredCalls, ...sums } = child;
  return withCalls(models, model, { ...sums, meteredCalls, cost: costUsd === null ? null : exactDollars(costUsd) });
}

function started(effort: RunEffort, { step, model, attempt, panelStep, reserved }: NodeStartedData): RunEffort {
  // A council asks no model itself.
  if (model === '') return effort;
  const rounds = reserved === undefined ? 0 : null;
  return counted(effort, { step, model, rounds, panelStep }, { calls: 1, repeatedCalls: attempt > 1 ? 1 : 0 });
}

/** Another call of the attempt follows one that has ended. */
function callReserved(effort: RunEffort, call: CallReservedData): RunEffort {
  const attempt = attemptOf(effort, call.step);
  return attempt === undefined ? effort : counted(effort, attempt, costOf(call, { calls: 1, more: 1 }));
}

function toolCalled(effort: RunEffort, { step, round }: ToolCalledData): RunEffort {
  const attempt = attemptOf(effort, step);
  // The model asks for all calls of a round in one answer.
  if (attempt === undefined || attempt.rounds === null || round <= attempt.rounds) return effort;
  return counted(effort, { ...attempt, rounds: round }, { calls: round - attempt.rounds });
}

function ended(effort: RunEffort, end: NodeCompletedData | NodeFailedData): RunEffort {
  const attempt = attemptOf(effort, end.step);
  if (attempt === undefined) return effort;
  const before = callsOf(attempt);
  const calls = Math.max(before, end.calls ?? 0);
  const cost = costOf(attempt.rounds === null ? callEndedBy(end) : end, { calls, more: calls - before });
  const { models, open, waitedMs } = counted(effort, attempt, cost);
  return { models, open: open.slice(0, -1), waitedMs };
}

/** The calls of an attempt that are counted before its end and have no cost yet. */
function callsOf({ rounds }: OpenAttempt): number {
  return 1 + (rounds ?? 0);
}

/** The calls of a step's attempt in flight that the record shows so far. */
export function callsCounted(effort: RunEffort, step: number): number {
  const attempt = attemptOf(effort, step);
  return attempt === undefined ? 1 : callsOf(attempt);
}

function attemptOf({ open }: RunEffort, step: number): OpenAttempt | undefined {
  return open.find((each) => each.step === step);
}

/**
 * The cost of calls that have ended together, as far as it is known.
 *
 * @param more of them, those that are not counted yet
 */
function costOf(
  { usage, costUsd = null }: Partial<CallUsage>,
  { calls, more }: { readonly calls: number; readonly more: number },
): Change {
  const { inputTokens, outputTokens, cachedInputTokens, reasoningTokens } = reportedTokens(usage);
  const meteredCalls = inputTokens === null && outputTokens === null ? 0 : calls;
  const pricedCalls = costUsd === null ? 0 : calls;
  return {
    calls: more,
    meteredCalls,
    inputTokens,
    outputTokens,
    cachedInputTokens,
    reasoningTokens,
    pricedCalls,
    cost: costUsd === null ? null : exactDollars(costUsd),
  };
}

/** Usage and cost of the call with which an attempt ends: its last, or its only one. */
export function callEndedBy(end: Partial<CallUsage> & { readonly lastCall?: CallUsage }): Partial<CallUsage> {
  return end.lastCall ?? end;
}

/** The tokens of an attempt, each null if its provider does not report it. */
export function reportedTokens(usage: NodeUsage | null = null) {
  const { inputTokens = null, outputTokens = null, cachedInputTokens, reasoningTokens = null } = usage ?? {};
  // Events without `cachedInputTokens` are older and record unreported tokens as 0, which no call uses.
  const isOlder = cachedInputTokens === undefined;
  return {
    inputTokens: isOlder ? inputTokens || null : inputTokens,
    outputTokens: isOlder ? outputTokens || null : outputTokens,
    cachedInputTokens: cachedInputTokens ?? null,
    reasoningTokens,
  };
}

/** Adds to the counts of an attempt's model; the attempt becomes the last of those that are open. */
function counted(effort: RunEffort, attempt: OpenAttempt, change: Change): RunEffort {
  const models = withCalls(effort.models, attempt.model, change);
  // An attempt that was lost with its instance has no end.
  const others = effort.open.filter(({ step }) => step !== attempt.step);
  return { models, open: [...others, attempt], waitedMs: effort.waitedMs };
}

/** Adds to the counts of a model. */
function withCalls(models: RunEffort['models'], model: string, change: Change): RunEffort['models'] {
  return models.some((each) => each.model === model)
    ? models.map((each) => (each.model === model ? withChange(each, change) : each))
    : [...models, withChange(noneOf(model), change)];
}

function waited(effort: RunEffort, pausedAt: string, at: string): RunEffort {
  // The difference is negative if the clocks of two instances differ.
  return { ...effort, waitedMs: effort.waitedMs + Math.max(0, Date.parse(at) - Date.parse(pausedAt)) };
}

type Change = Partial<Omit<ModelEffort, 'model'>>;

function noneOf(model: string): ModelEffort {
  return {
    model,
    calls: 0,
    repeatedCalls: 0,
    meteredCalls: 0,
    inputTokens: null,
    outputTokens: null,
    cachedInputTokens: null,
    reasoningTokens: null,
    pricedCalls: 0,
    cost: null,
  };
}

function withChange(before: ModelEffort, change: Change): ModelEffort {
  return {
    model: before.model,
    calls: before.calls + (change.calls ?? 0),
    repeatedCalls: before.repeatedCalls + (change.repeatedCalls ?? 0),
    meteredCalls: before.meteredCalls + (change.meteredCalls ?? 0),
    inputTokens: sumOf(before.inputTokens, change.inputTokens),
    outputTokens: sumOf(before.outputTokens, change.outputTokens),
    cachedInputTokens: sumOf(before.cachedInputTokens, change.cachedInputTokens),
    reasoningTokens: sumOf(before.reasoningTokens, change.reasoningTokens),
    pricedCalls: before.pricedCalls + (change.pricedCalls ?? 0),
    cost: plus(before.cost, change.cost),
  };
}

/** The sum of what is known, or null if nothing is. */
function sumOf(before: number | null, more: number | null = null): number | null {
  return more === null ? before : (before ?? 0) + more;
}

function plus(before: ExactDollars | null, more: ExactDollars | null = null): ExactDollars | null {
  return more === null ? before : (before ?? 0n) + more;
}

type ModelUsageTotals = Required<ModelTotals>;

/** The totals as this version records them. Older events lack the fields of the cost. */
export type UsageTotals = Required<Omit<RunTotals, 'byModel'>> & { readonly byModel: ModelUsageTotals[] };

/** What a run has cost in all, and by model, as it is recorded. */
export function usageOf({ models }: RunEffort): UsageTotals {
  const all = modelTotalsOf(models.reduce(withChange, noneOf('')));
  return {
    calls: all.calls,
    repeatedCalls: all.repeatedCalls,
    toldCalls: all.toldCalls,
    inputTokens: all.inputTokens,
    outputTokens: all.outputTokens,
    cachedInputTokens: all.cachedInputTokens,
    reasoningTokens: all.reasoningTokens,
    pricedCalls: all.pricedCalls,
    costUsd: all.costUsd,
    byModel: models.map(modelTotalsOf),
  };
}

/** Names each field, because Node 20 is slow to spread at each event. Events call the metered calls `toldCalls`. */
function modelTotalsOf(effort: ModelEffort): ModelUsageTotals {
  return {
    model: effort.model,
    calls: effort.calls,
    repeatedCalls: effort.repeatedCalls,
    toldCalls: effort.meteredCalls,
    inputTokens: effort.inputTokens,
    outputTokens: effort.outputTokens,
    cachedInputTokens: effort.cachedInputTokens,
    reasoningTokens: effort.reasoningTokens,
    pricedCalls: effort.pricedCalls,
    costUsd: effort.cost === null ? null : dollarsOf(effort.cost),
  };
}
