/** The outcome of an attempt, as the command that records it, and the delay before the next attempt. */
import type { StepFailure, StepOutcome } from '../../council/step.js';
import type { NodeUsage } from '../../generated/schemas.js';
import type { ModelUsage } from '../../models/port.js';
import type { PriceTable } from '../../models/prices.js';
import { costOf } from '../../models/prices.js';
import { honouredMs, providerWaitMs } from '../../system/async/retry.js';
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
  const cost = ({ costUsd: reported, ...usage }: ModelUsage): { usage: NodeUsage; costUsd: number | null } => ({
    usage,
    costUsd: reported ?? costOf(usage, at.model === null ? null : prices.priceOf(at.model)),
  });
  if (outcome.kind === 'failed') {
    const { failure } = outcome;
    const { kind, message, retryable, outageMs, usage } = failure;
    const failures = failuresWith(at, outageMs !== undefined);
    const waitMs = retryInMs(failure, { failures, maxAttempts, random });
    const recorded = {
      ...{ step, attempt, kind, message, retryable },
      ...(outageMs !== undefined && { outageMs }),
      ...(usage !== undefined && cost(usage)),
    };
    return { type: 'FailNode', failure: recorded, retryInMs: waitMs };
  }
  const { usage, durationMs, dropped, finish } = outcome;
  const output =
    outcome.kind === 'drafted' ? { draft: outcome.draft } : { score: outcome.score, feedback: outcome.feedback };
  const notes = { ...(dropped !== undefined && { dropped: [...dropped] }), ...(finish !== undefined && { finish }) };
  return { type: 'CompleteNode', result: { step, attempt, output, ...cost(usage), durationMs, ...notes } };
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
