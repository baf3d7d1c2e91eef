/** What a run has cost: calls to models, their tokens, and time in pauses. A fork counts its own alone. */
import type { NodeUsage, RunTotals } from '../generated/schemas.js';
import type { RunEvent } from './events.js';

/** What one model was asked for. */
export interface ModelEffort {
  readonly model: string;
  /** Attempts of nodes, and one more for each round of tool calls that was answered. */
  readonly calls: number;
  /** Attempts that were not the first of their step. */
  readonly repeatedCalls: number;
  /** Calls whose tokens are in the sums; of the others the provider told nothing, or they failed, were lost or are under way. */
  readonly meteredCalls: number;
  /** Sums over the calls that told them; null: none did. */
  readonly inputTokens: number | null;
  readonly outputTokens: number | null;
}

/** An attempt that has not ended. */
interface OpenAttempt {
  readonly step: number;
  readonly model: string;
  /** Rounds of tool calls so far. */
  readonly rounds: number;
}

export interface RunEffort {
  /** In the order in which they were first asked. */
  readonly models: readonly ModelEffort[];
  readonly open: readonly OpenAttempt[];
  /** Time in pauses that have ended, in milliseconds. */
  readonly waitedMs: number;
}

export const NO_EFFORT: RunEffort = { models: [], open: [], waitedMs: 0 };

/**
 * The effort after an event.
 *
 * @param pausedAt when the pause began that was open before it, ISO 8601; null: none was
 */
export function effortAfter(effort: RunEffort, event: RunEvent, pausedAt: string | null): RunEffort {
  switch (event.type) {
    case 'RunRequested':
      return NO_EFFORT;
    case 'NodeStarted':
      return started(effort, event.data);
    case 'ToolCalled':
      return rounded(effort, event.data);
    case 'NodeCompleted':
    case 'NodeFailed':
      return ended(effort, event.data);
    case 'RunCompleted':
      return { models: event.data.usage?.byModel ?? effort.models, open: [], waitedMs: effort.waitedMs };
    case 'GateDecided':
    case 'RunFailed':
      return pausedAt === null ? effort : waited(effort, pausedAt, event.at);
    case 'RunClaimed':
    case 'RunReleased':
    case 'RunStarted':
    case 'RunResumed':
    case 'RunPaused':
    case 'VoteCast':
    case 'PauseEscalated':
      return effort;
  }
}

function started(
  effort: RunEffort,
  { step, model, attempt }: { readonly step: number; readonly model: string; readonly attempt: number },
): RunEffort {
  return counted(effort, { step, model, rounds: 0 }, { ...NOTHING, calls: 1, repeatedCalls: attempt > 1 ? 1 : 0 });
}

function rounded(effort: RunEffort, { step, round }: { readonly step: number; readonly round: number }): RunEffort {
  const at = effort.open.find((each) => each.step === step);
  // Calls of one round were asked for by one answer.
  if (at === undefined || round <= at.rounds) return effort;
  return counted(effort, { ...at, rounds: round }, { ...NOTHING, calls: round - at.rounds });
}

function ended(effort: RunEffort, { step, usage }: { readonly step: number; readonly usage?: NodeUsage }): RunEffort {
  const at = effort.open.find((each) => each.step === step);
  if (at === undefined) return effort;
  // What a provider does not tell is recorded as 0, which no call costs.
  const isTold = usage !== undefined && usage.inputTokens + usage.outputTokens > 0;
  const change = isTold ? { ...NOTHING, ...usage, meteredCalls: 1 + at.rounds } : NOTHING;
  const { models, open, waitedMs } = counted(effort, at, change);
  return { models, open: open.slice(0, -1), waitedMs };
}

/** With a change to the counts of an attempt's model; the attempt is the last of those that are open. */
function counted({ models, open, waitedMs }: RunEffort, attempt: OpenAttempt, change: Change): RunEffort {
  // An attempt that was lost with its instance has no end.
  const others = open.filter(({ step }) => step !== attempt.step);
  return { models: added(models, attempt.model, change), open: [...others, attempt], waitedMs };
}

function waited({ models, open, waitedMs }: RunEffort, pausedAt: string, at: string): RunEffort {
  // Clocks of instances differ.
  return { models, open, waitedMs: waitedMs + Math.max(0, Date.parse(at) - Date.parse(pausedAt)) };
}

/** Counts to add; 0 tokens are none that were told. */
type Change = { readonly [Count in Exclude<keyof ModelEffort, 'model'>]: number };

const NOTHING: Change = { calls: 0, repeatedCalls: 0, meteredCalls: 0, inputTokens: 0, outputTokens: 0 };

function added(models: readonly ModelEffort[], model: string, change: Change): readonly ModelEffort[] {
  if (!models.some((each) => each.model === model)) return [...models, withChange(noneOf(model), change)];
  return models.map((each) => (each.model === model ? withChange(each, change) : each));
}

function noneOf(model: string): ModelEffort {
  return { model, calls: 0, repeatedCalls: 0, meteredCalls: 0, inputTokens: null, outputTokens: null };
}

function withChange(before: ModelEffort, change: Change): ModelEffort {
  return {
    model: before.model,
    calls: before.calls + change.calls,
    repeatedCalls: before.repeatedCalls + change.repeatedCalls,
    meteredCalls: before.meteredCalls + change.meteredCalls,
    inputTokens: sumOf(before.inputTokens, change.inputTokens),
    outputTokens: sumOf(before.outputTokens, change.outputTokens),
  };
}

function sumOf(before: number | null, tokens: number): number | null {
  if (tokens === 0) return before;
  return before === null ? tokens : before + tokens;
}

/** What a run has cost in all, and by model. */
export function usageOf({ models }: RunEffort): RunTotals {
  const { calls, repeatedCalls, meteredCalls, inputTokens, outputTokens } = models.reduce(
    (sum, each) =>
      withChange(sum, { ...each, inputTokens: each.inputTokens ?? 0, outputTokens: each.outputTokens ?? 0 }),
    noneOf(''),
  );
  return { calls, repeatedCalls, meteredCalls, inputTokens, outputTokens, byModel: [...models] };
}
