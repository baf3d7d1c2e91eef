/** Takes a run from start to end on any driver: shows progress and asks for decisions at pauses. */
import { CouncilError } from '../../errors.js';
import type { RunResult } from '../../generated/schemas.js';
import type { ApprovalPrompt } from '../terminal/approval-prompt.js';
import type { RunDriver, RunOptions } from './driver.js';
import type { Progress } from '../terminal/progress.js';
import type { PrintedStream } from '../terminal/printer.js';
import { printable } from '../terminal/printer.js';

export interface RunCouncilDeps {
  readonly progress: Progress;
  /** Asks for a decision at each pause; null outside God Mode. */
  readonly prompt: ApprovalPrompt | null;
  /** Aborted when the user cancels the run. */
  readonly cancelled: AbortSignal;
}

/** The cancellation could not be delivered. */
export class CancelLost extends CouncilError<{ readonly runId: string }> {
  readonly code = 'cli.cancel-lost';
  constructor({ runId, cause }: { readonly runId: string; readonly cause: unknown }) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    super(`Cannot cancel run "${runId}", it may go on: ${reason}`, { runId }, { cause });
  }
}

/**
 * Runs a council; resolves with the run as it ended, or paused as it is when the prompt's input has ended.
 *
 * @throws {CancelLost} when a cancellation cannot be delivered
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
    // A cancellation aborts the other calls: their errors are expected.
    if (!cancelled.aborted) throw error;
  } finally {
    cancelled.removeEventListener('abort', cancel);
  }
  const lost = await cancelling;
  if (lost !== null) throw lost;
  return await driver.result(runId);
}

/** Shows a run and has its pauses decided, until it has ended or the prompt's input has. */
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

/** Prompts until a decision is taken, here or elsewhere. @returns false when the prompt's input has ended */
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

// Writes the result of a run to standard output.

/** Standard output cannot be written, as on a full disk. The run itself is recorded. */
export class OutputLost extends CouncilError<{ readonly runId: string }> {
  readonly code = 'cli.output-lost';
  constructor({ runId, cause }: { readonly runId: string; readonly cause: Error }) {
    super(`Cannot write what run "${runId}" has made: ${cause.message}. Its record holds it`, { runId }, { cause });
  }
}

export interface Output {
  readonly stream: PrintedStream & { readonly isTTY?: boolean };
  /** The whole result instead of the final draft. */
  readonly isJson: boolean;
}

/**
 * Writes the final draft and nothing else; as it is, except to a terminal. A reader that has gone away is no fault.
 *
 * @throws {OutputLost} when it cannot be written
 */
export async function writeResult(result: RunResult, { stream, isJson }: Output): Promise<void> {
  const text = isJson ? JSON.stringify(result) : result.final_draft;
  if (text === null) return;
  await write(stream, stream.isTTY ? printable(text) : text, result.run_id);
  // Written separately: a full disk may take part of the text without an error, but then fails this write.
  await write(stream, '\n', result.run_id);
}

async function write(stream: Output['stream'], text: string, runId: string): Promise<void> {
  const fault = await new Promise<Error | null | undefined>((resolve) => stream.write(text, resolve));
  if (!fault || ('code' in fault && fault.code === 'EPIPE')) return;
  throw new OutputLost({ runId, cause: fault });
}
