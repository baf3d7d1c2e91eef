/** The errors of an event log. Each says whether anything was written. */
import { CouncilError } from '../errors.js';

type Revision = 'none' | number;

/** The stream is at another revision than the append expected. Certainly not written. */
export class RevisionConflict extends CouncilError<{ stream: string; expected: Revision; actual: Revision }> {
  readonly code = 'log.conflict';
  constructor(data: { stream: string; expected: Revision; actual: Revision }) {
    super(`Cannot append to "${data.stream}": revision ${data.expected} expected, ${data.actual} found`, data);
  }
}

/** The append is larger than the log takes. Certainly not written. */
export class AppendTooLarge extends CouncilError<{ stream: string; bytes: number; limit: number }> {
  readonly code = 'log.too-large';
  constructor(data: { stream: string; bytes: number; limit: number }) {
    super(`Cannot append to "${data.stream}": ${data.bytes} bytes, at most ${data.limit} allowed`, data);
  }
}

/** The append is malformed: no events, an id twice, an unusable name or data that is no JSON object. Certainly not written. */
export class AppendInvalid extends CouncilError<{ stream: string; reason: string }> {
  readonly code = 'log.invalid';
  constructor(data: { stream: string; reason: string }) {
    super(`Cannot append to "${data.stream}": ${data.reason}`, data);
  }
}

/** The log was closed before the call. Certainly not written. */
export class LogClosed extends CouncilError {
  readonly code = 'log.closed';
  constructor() {
    super('Cannot use the event log: it is closed', {});
  }
}

/** The stream was removed for good: it has no events any more, and takes none. Certainly not written. */
export class StreamRemoved extends CouncilError<{ readonly stream: string }> {
  readonly code = 'log.stream-removed';
  constructor(data: { readonly stream: string }) {
    super(`Cannot use "${data.stream}": it was removed from the event log`, data);
  }
}

/** The log cannot be reached. Certainly not sent. */
export class LogUnavailable extends CouncilError {
  readonly code = 'log.unavailable';
  constructor(options?: ErrorOptions) {
    super('Cannot reach the event log', {}, options);
  }
}

/** The log's server refuses the user or the password of this service. Certainly not written. */
export class LogDenied extends LogUnavailable {}

/**
 * A write to the embedded log's file, or its fsync, has failed. After a failed fsync the next one may falsely succeed, so
 * the process must not close the file normally: closing would sync again.
 */
export class WriteFailed extends CouncilError {
  readonly code = 'log.write-failed';
  constructor(reason: string) {
    super(`Cannot tell whether the event log was written: ${reason}`, {});
  }
}

/** The log's disk is full: it refuses appends until there is room again, and serves reads. Certainly not written. */
export class LogFull extends CouncilError {
  readonly code = 'log.full';
  constructor() {
    super('Cannot write to the event log: its disk is full', {});
  }
}

/** A stored record is corrupt, and cannot be read or appended to. Certainly not written. */
export class LogCorrupt extends CouncilError<{ readonly file: string }> {
  readonly code = 'log.corrupt';
  constructor({ file, reason }: { readonly file: string; readonly reason: string }) {
    const remedy =
      'stop the service, run `council check`, then restore a backup or copy the intact records with `council salvage`';
    super(`The event log "${file}" is corrupt (${reason}): ${remedy}`, { file });
  }
}

/** Whether a write or a sync of the embedded log has failed. */
export function isWriteFailed(fault: unknown): boolean {
  return fault instanceof LogUnavailable && fault.cause instanceof WriteFailed;
}

/** A stream without which the log cannot be used was deleted or truncated on the server. */
export class StreamLost extends CouncilError<{ readonly stream: string }> {
  readonly code = 'log.stream-lost';
  constructor(data: { readonly stream: string }) {
    const remedy = "restore the server's database, or begin a new log with another EVENTSTORE_PREFIX";
    super(
      `Cannot use the event log: its stream "${data.stream}" was deleted or truncated on the server: ${remedy}`,
      data,
    );
  }
}

/** The log has no name although it holds events. */
export class LogNameless extends CouncilError<{ readonly stream: string }> {
  readonly code = 'log.nameless';
  constructor(data: { readonly stream: string }) {
    const remedy = "restore the server's database, or choose an EVENTSTORE_PREFIX that no other program uses";
    super(`Cannot use the event log: it holds events, but its stream "${data.stream}" is missing: ${remedy}`, data);
  }
}

/** The log was replaced by another one or an older copy while the service used it. */
export class LogReplaced extends CouncilError {
  readonly code = 'log.replaced';
  constructor(sign: string) {
    super(`The event log was replaced by another one or an older copy of it: ${sign}`, {});
  }
}

/** It is unknown whether the append was written: retry with the same ids and revision. */
export class AppendOutcomeUnknown extends CouncilError<{ stream: string }> {
  readonly code = 'log.outcome-unknown';
  constructor(data: { stream: string }, options?: ErrorOptions) {
    super(`Cannot tell whether the append to "${data.stream}" was written`, data, options);
  }
}

/** A subscription ended on its own; subscribe again after `last`. */
export class SubscriptionDropped extends CouncilError<{ last: string | null }> {
  readonly code = 'log.dropped';
  constructor(data: { last: string | null }, options?: ErrorOptions) {
    super(`Subscription dropped after position ${data.last ?? 'start'}`, data, options);
  }
}

/** Another process holds the data directory. */
export class DataDirHeld extends CouncilError<{ path: string; holder: string }> {
  readonly code = 'data-dir.held';
  constructor(data: { path: string; holder: string }) {
    super(`Cannot use the data directory "${data.path}": ${data.holder} holds it`, data);
  }
}

/** A backup of the log was refused before it began: nothing was written. */
export class BackupRefused extends CouncilError<{ to: string; reason: string }> {
  readonly code = 'backup.refused';
  constructor(data: { to: string; reason: string }) {
    super(`Cannot back up the event log to "${data.to}": ${data.reason}`, data);
  }
}

/** A backup of the log has failed: there is no copy. */
export class BackupFailed extends CouncilError<{ to: string; reason: string }> {
  readonly code = 'backup.failed';
  constructor(data: { to: string; reason: string }, options?: ErrorOptions) {
    super(`The backup of the event log to "${data.to}" has failed: ${data.reason}`, data, options);
  }
}
