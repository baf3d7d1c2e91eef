/** Standard output, as far as it takes what it is given. */
import { CouncilError } from '../../errors.js';

/** Whoever read it has gone away, as `head` does. */
export class ReaderGone extends CouncilError {
  readonly code = 'cli.reader-gone';
  constructor() {
    super('Nobody reads the output any more', {});
  }
}

/** It takes no more: a full disk, for one. */
export class OutputFailed extends CouncilError {
  readonly code = 'cli.output-failed';
  constructor(cause: Error) {
    super(`Cannot write the output: ${cause.message}`, {}, { cause });
  }
}

export interface PrintedStream {
  write(text: string | Uint8Array, told: (fault?: Error | null) => void): unknown;
}

/** Writes, one piece after the other. @throws {ReaderGone | OutputFailed} */
export type Print = (text: string | Uint8Array) => Promise<void>;

export function printerOn(stream: PrintedStream): Print {
  return async (text) => {
    const fault = await new Promise<Error | null | undefined>((resolve) => stream.write(text, resolve));
    if (!fault) return;
    throw 'code' in fault && fault.code === 'EPIPE' ? new ReaderGone() : new OutputFailed(fault);
  };
}
