/** The outcome of an attempt, as the command that records it, and the delay before the next attempt. */
import type { StepFailure, StepOutcome } from '../../council/step.js';
import { honouredMs, providerWaitMs } from '../../system/async/retry.js';
import type { RunCommand } from '../decide.js';
import type { FrontierNode } from '../state.js';
import { failuresWith } from '../state.js';

/** @param random in [0, 1): spreads the retries of attempts that failed together */
export function reportOf(
  at: FrontierNode,
  outcome: StepOutcome,
  { maxAttempts, random }: { readonly maxAttempts: number; readonly random: number },
): RunCommand {
  const { step, attempt } = at;
  if (outcome.kind === 'failed') {
    const { failure } = outcome;
    const { kind, message, retryable, outageMs, usage } = failure;
    const failures = failuresWith(at, outageMs !== undefined);
    const waitMs = retryInMs(failure, { failures, maxAttempts, random });
    const recorded = {
      ...{ step, attempt, kind, message, retryable },
      ...(outageMs !== undefined && { outageMs }),
      ...(usage !== undefined && { usage }),
    };
    return { type: 'FailNode', failure: recorded, retryInMs: waitMs };
  }
  const { usage, durationMs } = outcome;
  const output =
    outcome.kind === 'drafted' ? { draft: outcome.draft } : { score: outcome.score, feedback: outcome.feedback };
  return { type: 'CompleteNode', result: { step, attempt, output, usage, durationMs } };
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
