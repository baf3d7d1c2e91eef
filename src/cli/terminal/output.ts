/** What a run has made, on standard output. */
import { CouncilError } from '../../errors.js';
import type { RunResult } from '../../generated/schemas.js';
import { printable } from './printable.js';

/** Standard output takes no more: a full disk, for one. The run itself is recorded. */
export class OutputLost extends CouncilError<{ readonly runId: string }> {
  readonly code = 'cli.output-lost';
  constructor({ runId, cause }: { readonly runId: string; readonly cause: Error }) {
    super(`Cannot write what run "${runId}" has made: ${cause.message}. Its record holds it`, { runId }, { cause });
  }
}

export interface Output {
  readonly stream: {
    readonly isTTY: boolean;
    write(text: string, done: (fault?: Error | null) => void): unknown;
  };
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
