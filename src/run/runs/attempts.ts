/** The outcome of an attempt, as the command that records it, and the delay before the next attempt. */
import type { StepFailure } from '../../council/executors.js';
import type { StepOutcome } from '../../council/step.js';
import type { CallUsage, NodeOutput } from '../../generated/schemas.js';
import type { ModelUsage } from '../../models/port.js';
import type { PriceTable } from '../../models/prices.js';
import { costOf } from '../../models/prices.js';
import { honouredMs, providerWaitMs } from '../../system/async/deadline.js';
import type { RunCommand } from '../decide.js';
import type { FrontierNode } from '../state.js';
import { failuresWith } from '../state.js';

export interface ReportOptions {
  readonly maxAttempts: number;
  /** In [0, 1): spreads the retries of attempts that failed together. */
  readonly random: number;
  readonly prices: Pick<PriceTable, 'priceOf'>;
}

/** The command that records the outcome of an attempt, with its cost. */
export function reportOf(
  at: FrontierNode,
  outcome: StepOutcome,
  { maxAttempts, random, prices }: ReportOptions,
): RunCommand {
  const { step, attempt } = at;
  const cost = (usage: ModelUsage): CallUsage => costed(at, usage, prices);
  if (outcome.kind === 'failed') {
    const { failure } = outcome;
    const { kind, message, retryable, outageMs, usage } = failure;
    const failures = failuresWith(at, outageMs !== undefined);
    const waitMs = retryInMs(failure, { failures, maxAttempts, random });
    const recorded = {
      step,
      attempt,
      kind,
      message,
      retryable,
      ...(outageMs !== undefined && { outageMs }),
      ...(usage !== undefined && cost(usage)),
      ...(failure.calls !== undefined && { calls: failure.calls }),
      ...(failure.lastCall !== undefined && { lastCall: cost(failure.lastCall) }),
    };
    return { type: 'FailNode', failure: recorded, retryInMs: waitMs };
  }
  const { usage, durationMs, dropped, finish } = outcome;
  const output = outputOf(at, outcome);
  const result = {
    step,
    attempt,
    output,
    durationMs,
    ...cost(usage),
    ...(dropped !== undefined && { dropped: [...dropped] }),
    ...(finish !== undefined && { finish }),
    ...(outcome.calls !== undefined && { calls: outcome.calls }),
    ...(outcome.lastCall !== undefined && { lastCall: cost(outcome.lastCall) }),
  };
  return { type: 'CompleteNode', result };
}

/** The output of a successful attempt, as recorded. */
function outputOf({ seat }: FrontierNode, outcome: Exclude<StepOutcome, { readonly kind: 'failed' }>): NodeOutput {
  switch (outcome.kind) {
    case 'drafted':
      return seat === null ? { draft: outcome.draft } : { answer: outcome.draft };
    case 'scored':
      return { score: outcome.score, feedback: outcome.feedback };
    case 'ranked':
      return { ranking: [...outcome.ranking], comment: outcome.comment };
    case 'analysed':
      return { analysis: outcome.analysis };
    default:
      return outcome satisfies never;
  }
}

/** A usage with its cost, as recorded. */
export function costed(
  { model }: Pick<FrontierNode, 'model'>,
  call: ModelUsage,
  prices: ReportOptions['prices'],
): CallUsage {
  const { costUsd: _, cacheWriteHourTokens: __, ...usage } = call;
  return { usage, costUsd: costOf(call, model === null ? null : prices.priceOf(model)) };
}

/**
 * Milliseconds until the next attempt: exponential with full jitter, never less than the provider asked for. At the
 * beginning of an outage, it is the wait that the provider asked for, within the outage's budget, because the next
 * attempt itself waits for the outage to end.
 *
 * @param failures failed attempts of the step that count, this one included if it does
 * @param random in [0, 1)
 * @returns null when no further attempt will be made
 */
export function retryInMs(
  failure: StepFailure,
  {
    failures,
    maxAttempts,
    random,
  }: { readonly failures: number; readonly maxAttempts: number; readonly random: number },
): number | null {
  if (!failure.retryable || failures >= maxAttempts) return null;
  const { outageMs, retryAfterMs } = failure;
  if (outageMs !== undefined) return Math.round(Math.min(honouredMs(retryAfterMs), outageMs));
  return Math.round(providerWaitMs(failures, retryAfterMs, random));
}
