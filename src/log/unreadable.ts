import { CouncilError } from '../errors.js';

/** A log cannot be read where it was looked for, or not as one log. */
export class LogUnreadable extends CouncilError<{ readonly file: string }> {
  readonly code = 'log.unreadable';
  constructor({ file, reason }: { readonly file: string; readonly reason: string }, options?: ErrorOptions) {
    super(`Cannot read the event log "${file}": ${reason}`, { file }, options);
  }
}
