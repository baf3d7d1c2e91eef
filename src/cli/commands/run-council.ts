/** Runs a council from start to end with any driver: shows the progress and asks for a decision at each pause. */
import { CouncilError } from '../../errors.js';
import type { RunResult } from '../../generated/schemas.js';
import type { ApprovalPrompt } from '../terminal/approval-prompt.js';
import type { BudgetEnd } from '../../run/budget/end.js';
import type { System } from '../../system/system.js';
import type { RunDriver, RunOptions } from './driver.js';
import type { Progress } from '../terminal/progress.js';
import type { PrintedStream } from '../terminal/printer.js';
import { printable } from '../terminal/printer.js';

export interface RunCouncilDeps {
  readonly progress: Progress;
  /** Asks for a decision at each pause, or null if the run does not pause. */
  readonly prompt: ApprovalPrompt | null;
  /** Aborted when the user cancels the run. */
  readonly cancelled: AbortSignal;
  readonly system: Pick<System, 'now' | 'sha256'>;
}

/** The command cannot cancel the run. */
export class CancelFailed extends CouncilError<{ readonly runId: string }> {
  readonly code = 'cli.cancel-failed';
  constructor({ runId, cause }: { readonly runId: string; readonly cause: unknown }) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    super(`Cannot cancel run "${runId}", which may continue: ${reason}`, { runId }, { cause });
  }
}

export interface CouncilOutcome {
  readonly result: RunResult;
  /** How its budget has ended the run, or null if it has not. */
  readonly budgetEnd: BudgetEnd | null;
}

/**
 * Runs a council. Resolves with the result once the run has ended, or once the input of the prompt has ended at a pause.
 *
 * @throws {CancelFailed}
 */
export async function runCouncil(
  driver: RunDriver,
  request: RunOptions,
  deps: RunCouncilDeps,
): Promise<CouncilOutcome> {
  const { progress, prompt, cancelled } = deps;
  const runId = await driver.start(request);
  progress.say(`Run ${runId} ${driver.place}`);
  let cancelling: Promise<CancelFailed | null> = Promise.resolve(null);
  const cancel = (): void => {
    prompt?.close();
    cancelling = driver.cancel(runId).then(
      () => null,
      (cause: unknown) => new CancelFailed({ runId, cause }),
    );
  };
  if (cancelled.aborted) cancel();
  else cancelled.addEventListener('abort', cancel);
  let budgetEnd: BudgetEnd | null = null;
  try {
    budgetEnd = await followAndDecide(driver, runId, deps);
  } catch (error) {
    // A cancellation aborts the other calls, so their errors are expected.
    if (!cancelled.aborted) throw error;
  } finally {
    cancelled.removeEventListener('abort', cancel);
  }
  const failure = await cancelling;
  if (failure !== null) throw failure;
  return { result: await driver.result(runId), budgetEnd };
}

/**
 * Shows the progress of a run and asks at its pauses, until the run or the input of the prompt ends.
 *
 * @returns how its budget has ended the run, or null
 */
async function followAndDecide(
  driver: RunDriver,
  runId: string,
  { progress, prompt, cancelled, system }: RunCouncilDeps,
): Promise<BudgetEnd | null> {
  let budgetEnd: BudgetEnd | null = null;
  for await (const state of driver.follow(runId)) {
    ({ budgetEnd } = state);
    for (const notice of state.notices) progress.say(notice);
    progress.show(state);
    if (!state.isPaused || prompt === null || cancelled.aborted) continue;
    const isAnswered = await decidePause(driver, runId, { progress, prompt, system });
    if (!isAnswered) return null;
  }
  return budgetEnd;
}

/** Asks until the pause is decided, here or elsewhere. @returns false if the input of the prompt has ended */
async function decidePause(
  driver: RunDriver,
  runId: string,
  { progress, prompt, system }: Pick<RunCouncilDeps, 'progress' | 'system'> & { readonly prompt: ApprovalPrompt },
): Promise<boolean> {
  for (let pause = await driver.pause(runId); pause !== null; pause = await driver.pause(runId)) {
    const opened_at = system.now();
    const answer = await prompt.ask(pause);
    if (answer === null) return false;
    const { current_draft: draft } = pause.current_state;
    const review = { draft_sha256: draft === null ? null : system.sha256(draft), opened_at };
    // A pause for the budget shows no draft.
    const decision = pause.pause_reason === 'budget' ? answer : { ...answer, review };
    const refusal = await driver.decide(runId, pause.seq, decision);
    if (refusal === null) return true;
    progress.say(refusal);
  }
  return true;
}

/** Standard output cannot be written, for example on a full disk. The record of the run is complete. */
export class OutputLost extends CouncilError<{ readonly runId: string }> {
  readonly code = 'cli.output-lost';
  constructor({ runId, cause }: { readonly runId: string; readonly cause: Error }) {
    super(
      `Cannot write the result of run "${runId}": ${cause.message}. Its record contains the result`,
      { runId },
      { cause },
    );
  }
}

export interface Output {
  readonly stream: PrintedStream & { readonly isTTY?: boolean };
  /** Whether to write the result as JSON instead of the final draft. */
  readonly isJson: boolean;
  /** Whether the run has an exact output, which is then written as JSON instead of the final draft. */
  readonly hasOutput: boolean;
}

/**
 * Writes the final draft or the final output, and nothing else: unchanged to a pipe or file, to a terminal without characters that control it.
 * A closed pipe is no error.
 *
 * @throws {OutputLost}
 */
export async function writeResult(result: RunResult, { stream, isJson, hasOutput }: Output): Promise<void> {
  const text = isJson ? JSON.stringify(result) : hasOutput ? outputIn(result) : result.final_draft;
  if (text === null) return;
  await write(stream, stream.isTTY ? printable(text) : text, result.run_id);
  // A separate write: a full disk may accept part of the text without an error, but then fails this one.
  await write(stream, '\n', result.run_id);
}

/** The final output as JSON, or null if the run has none. */
function outputIn({ status, final_output: output = null }: RunResult): string | null {
  return status === 'completed' ? JSON.stringify(output) : null;
}

async function write(stream: Output['stream'], text: string, runId: string): Promise<void> {
  const fault = await new Promise<Error | null | undefined>((resolve) => stream.write(text, resolve));
  if (!fault || ('code' in fault && fault.code === 'EPIPE')) return;
  throw new OutputLost({ runId, cause: fault });
}
