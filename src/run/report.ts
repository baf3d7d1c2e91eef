/** What came of an attempt, as the command that records it. */
import type { StepOutcome } from '../council/step.js';
import { retryInMs } from './backoff.js';
import type { RunCommand } from './decide.js';
import type { FrontNode } from './state.js';
import { failuresWith } from './state.js';

/** @param random in [0, 1): spreads the waits of attempts that failed together */
export function reportOf(
  at: FrontNode,
  outcome: StepOutcome,
  { maxAttempts, random }: { readonly maxAttempts: number; readonly random: number },
): RunCommand {
  const { step, attempt } = at;
  if (outcome.kind === 'failed') {
    const { failure } = outcome;
    const { kind, message, retryable, outageMs, usage } = failure;
    const failures = failuresWith(at, outageMs !== undefined);
    const waitMs = retryInMs(failure, { failures, maxAttempts, random });
    const told = {
      ...{ step, attempt, kind, message, retryable },
      ...(outageMs !== undefined && { outageMs }),
      ...(usage !== undefined && { usage }),
    };
    return { type: 'FailNode', failure: told, retryInMs: waitMs };
  }
  const { usage, durationMs } = outcome;
  const output =
    outcome.kind === 'drafted' ? { draft: outcome.draft } : { score: outcome.score, feedback: outcome.feedback };
  return { type: 'CompleteNode', result: { step, attempt, output, usage, durationMs } };
}
