/**
 * Every error a caller may catch. `code` tells them apart; http/problems.ts is the one table from code to status.
 * Faults of the programs themselves are plain errors and appear nowhere here.
 */

/** Base of the errors below: a literal `code`, a message written by the constructor, a `cause` where there is one. */
export abstract class CouncilError extends Error {
  abstract readonly code: string;
  override get name(): string {
    return this.constructor.name;
  }
}

// The event log

/** Another event stands where the append wanted to stand. Surely not written. */
export class RevisionConflict extends CouncilError {
  readonly code = 'log.conflict';
  constructor(
    readonly stream: string,
    readonly expected: 'none' | number,
    readonly actual: 'none' | number,
  ) {
    super(`Cannot append to "${stream}": revision ${expected} expected, ${actual} found`);
  }
}

/** The append is larger than the log takes. Surely not written. */
export class AppendTooLarge extends CouncilError {
  readonly code = 'log.too-large';
  constructor(
    readonly stream: string,
    readonly bytes: number,
    readonly limit: number,
  ) {
    super(`Cannot append to "${stream}": ${bytes} bytes, at most ${limit} allowed`);
  }
}

/** The append is malformed: no events, an id twice, an unusable name or data that is no JSON object. Surely not written. */
export class AppendInvalid extends CouncilError {
  readonly code = 'log.invalid';
  constructor(
    readonly stream: string,
    readonly reason: string,
  ) {
    super(`Cannot append to "${stream}": ${reason}`);
  }
}

/** The log was closed before the call. Surely not written. */
export class LogClosed extends CouncilError {
  readonly code = 'log.closed';
  constructor() {
    super('Cannot use the event log: it is closed');
  }
}

/** The log cannot be reached. Surely not sent. */
export class LogUnavailable extends CouncilError {
  readonly code = 'log.unavailable';
  constructor(options?: ErrorOptions) {
    super('Cannot reach the event log', options);
  }
}

/** Nobody knows whether the append was written: retry with the same ids and revision. */
export class AppendOutcomeUnknown extends CouncilError {
  readonly code = 'log.outcome-unknown';
  constructor(
    readonly stream: string,
    options?: ErrorOptions,
  ) {
    super(`Cannot tell whether the append to "${stream}" was written`, options);
  }
}

/** A subscription ended on its own; subscribe again after `last`. */
export class SubscriptionDropped extends CouncilError {
  readonly code = 'log.dropped';
  constructor(
    readonly last: string | null,
    options?: ErrorOptions,
  ) {
    super(`Subscription dropped after position ${last ?? 'start'}`, options);
  }
}

/** Another process holds the data directory. */
export class DataDirHeld extends CouncilError {
  readonly code = 'data-dir.held';
  constructor(
    readonly path: string,
    readonly holder: string,
  ) {
    super(`Cannot use the data directory "${path}": ${holder} holds it`);
  }
}

// Configuration

/** A setting holds an unusable value. */
export class ConfigInvalid extends CouncilError {
  readonly code = 'config.invalid';
  constructor(
    readonly variable: string,
    readonly value: string,
    readonly accepted: string,
  ) {
    super(`Cannot use ${variable}="${value}": ${accepted} is accepted`);
  }
}

// The language model

/** A call to the model gave nothing usable. `kind` names what happened; retryable failures may be asked again. */
export class ModelFailed extends CouncilError {
  readonly code = 'model.failed';
  constructor(
    readonly kind: string,
    message: string,
    readonly retryable: boolean,
    /** How long the provider asked to wait, in milliseconds. */
    readonly retryAfterMs: number | null = null,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}
