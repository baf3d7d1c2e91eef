/** One run from its start to its end, whoever drives it: shown as it goes, decided on where it waits. */
import { CouncilError } from '../../errors.js';
import type { RunResult } from '../../generated/schemas.js';
import type { ApprovalPrompt } from '../terminal/approval-prompt.js';
import type { RunDriver, RunOptions } from './driver.js';
import type { Progress } from '../terminal/progress.js';

export interface RunCouncilDeps {
  readonly progress: Progress;
  /** Who is asked at each pause; null outside God Mode. */
  readonly prompt: ApprovalPrompt | null;
  /** The user's wish to end the run. */
  readonly cancelled: AbortSignal;
}

/** The user's wish to end the run has not come through. */
export class CancelLost extends CouncilError<{ readonly runId: string }> {
  readonly code = 'cli.cancel-lost';
  constructor({ runId, cause }: { readonly runId: string; readonly cause: unknown }) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    super(`Cannot cancel run "${runId}", it may go on: ${reason}`, { runId }, { cause });
  }
}

/**
 * Runs a council; resolves with the run as it ended, or as it waits when nobody decides on it any more.
 *
 * @throws {CancelLost} when the user's wish to end it cannot be delivered
 */
export async function runCouncil(driver: RunDriver, request: RunOptions, deps: RunCouncilDeps): Promise<RunResult> {
  const { progress, prompt, cancelled } = deps;
  const runId = await driver.start(request);
  progress.say(`Run ${runId} ${driver.place}`);
  let cancelling: Promise<CancelLost | null> = Promise.resolve(null);
  const cancel = (): void => {
    prompt?.close();
    cancelling = driver.cancel(runId).then(
      () => null,
      (cause: unknown) => new CancelLost({ runId, cause }),
    );
  };
  if (cancelled.aborted) cancel();
  else cancelled.addEventListener('abort', cancel);
  try {
    await followAndDecide(driver, runId, deps);
  } catch (error) {
    // What the cancelling cuts short is no fault.
    if (!cancelled.aborted) throw error;
  } finally {
    cancelled.removeEventListener('abort', cancel);
  }
  const lost = await cancelling;
  if (lost !== null) throw lost;
  return await driver.result(runId);
}

/** Shows a run and has its pauses decided, until it has ended or nobody answers. */
async function followAndDecide(
  driver: RunDriver,
  runId: string,
  { progress, prompt, cancelled }: RunCouncilDeps,
): Promise<void> {
  for await (const state of driver.follow(runId)) {
    progress.show(state);
    if (!state.isPaused || prompt === null || cancelled.aborted) continue;
    const isAnswered = await decidePause(driver, runId, { progress, prompt });
    if (!isAnswered) return;
  }
}

/** Asks until a decision is taken, here or elsewhere. @returns false when nobody answers any more */
async function decidePause(
  driver: RunDriver,
  runId: string,
  { progress, prompt }: { readonly progress: Progress; readonly prompt: ApprovalPrompt },
): Promise<boolean> {
  for (let pause = await driver.pause(runId); pause !== null; pause = await driver.pause(runId)) {
    const decision = await prompt.ask(pause);
    if (decision === null) return false;
    const refusal = await driver.decide(runId, pause.seq, decision);
    if (refusal === null) return true;
    progress.say(refusal);
  }
  return true;
}
