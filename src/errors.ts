/**
 * Every error a caller may catch. `code` distinguishes them; api/problems.ts is the one table from code to status.
 * Programming errors are plain errors and are not listed here.
 */

/** Base of the errors below: a literal `code`, a message written by the constructor, what it is about in `data`, the `cause` kept. */
export abstract class CouncilError<Data extends object = object> extends Error {
  abstract readonly code: string;
  readonly data: Readonly<Data>;

  constructor(message: string, data: Data, options?: ErrorOptions) {
    super(message, options);
    this.data = data;
  }

  override get name(): string {
    return this.constructor.name;
  }
}

// The event log

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

/** The log cannot be reached. Certainly not sent. */
export class LogUnavailable extends CouncilError {
  readonly code = 'log.unavailable';
  constructor(options?: ErrorOptions) {
    super('Cannot reach the event log', {}, options);
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

// Configuration

/** A setting holds an unusable value. The message is one line whatever the value holds. */
export class ConfigInvalid extends CouncilError<{ variable: string; value: string; accepted: string }> {
  readonly code = 'config.invalid';
  constructor(data: { variable: string; value: string; accepted: string }) {
    const shown = JSON.stringify(data.value.slice(0, 200));
    super(`Cannot use ${data.variable}=${shown}: ${data.accepted} is accepted`, data);
  }
}

// Runs

/** No run has this id. */
export class RunUnknown extends CouncilError<{ runId: string }> {
  readonly code = 'run.unknown';
  constructor(data: { runId: string }) {
    super(`Cannot find run "${data.runId}"`, data);
  }
}

/** The run has ended; nothing changes it any more. */
export class RunFinished extends CouncilError<{ runId: string; status: string; action: string }> {
  readonly code = 'run.finished';
  constructor(data: { runId: string; status: string; action: string }) {
    super(`Cannot ${data.action} run "${data.runId}": it is ${data.status}`, data);
  }
}

/** A run's stream is not valid: a broken hash chain, or a transition its chart does not allow. */
export class RunCorrupt extends CouncilError<{ runId: string; seq: number; reason: string }> {
  readonly code = 'run.damaged';
  constructor(data: { runId: string; seq: number; reason: string }, options?: ErrorOptions) {
    super(`The record of run "${data.runId}" is damaged at seq ${data.seq}: ${data.reason}`, data, options);
  }
}

/** Nothing waits for a human's decision: no such run, no God Mode session, or no open pause. */
export class RunNotPaused extends CouncilError<{ runId: string; status: string }> {
  readonly code = 'run.not-paused';
  constructor(data: { runId: string; status: string }) {
    super(`Cannot decide on run "${data.runId}": it is not paused in God Mode, it is ${data.status}`, data);
  }
}

/** The run waits at another pause than the one that was decided on. */
export class PauseMoved extends CouncilError<{ runId: string; expectedSeq: number; actualSeq: number }> {
  readonly code = 'run.pause-moved';
  constructor(data: { runId: string; expectedSeq: number; actualSeq: number }) {
    super(
      `Cannot decide on run "${data.runId}": pause at seq ${data.expectedSeq} expected, it is at ${data.actualSeq}`,
      data,
    );
  }
}

/** No human decides on this run: there is none, or it was not started in God Mode. */
export class SessionUnknown extends CouncilError<{ runId: string }> {
  readonly code = 'run.session-unknown';
  constructor(data: { runId: string }) {
    super(`Cannot find a God Mode session of run "${data.runId}"`, data);
  }
}

/** The Idempotency-Key was used for another body. */
export class KeyReused extends CouncilError<{ runId: string }> {
  readonly code = 'run.key-reused';
  constructor(data: { runId: string }) {
    super('Cannot use this Idempotency-Key again: it was sent with another body', data);
  }
}

/** No further run may be pending. */
export class TooManyPending extends CouncilError<{ limit: number }> {
  readonly code = 'run.too-many-pending';
  constructor(data: { limit: number }) {
    super(`Cannot take another run: ${data.limit} are pending`, data);
  }
}

/** The service is stopping. */
export class ServiceStopping extends CouncilError {
  readonly code = 'service.stopping';
  constructor() {
    super('Cannot take new work: the service is stopping', {});
  }
}

// Blueprints

/** A text is no condition of the language an edge may use. `position` counts UTF-16 units from 0. */
export class ConditionInvalid extends CouncilError<{ position: number; reason: string }> {
  readonly code = 'condition.invalid';
  constructor(data: { position: number; reason: string }) {
    super(`Cannot read the condition at position ${data.position}: ${data.reason}`, data);
  }
}

/** No blueprint has this id, or none any more. */
export class BlueprintUnknown extends CouncilError<{ blueprintId: string }> {
  readonly code = 'blueprint.unknown';
  constructor(data: { blueprintId: string }) {
    super(`Cannot find blueprint "${data.blueprintId}"`, data);
  }
}

/** Another blueprint has the id already. */
export class BlueprintTaken extends CouncilError<{ blueprintId: string }> {
  readonly code = 'blueprint.taken';
  constructor(data: { blueprintId: string }) {
    super(`Cannot create blueprint "${data.blueprintId}": the id is taken`, data);
  }
}

/** It is larger than a blueprint may be, or its record, defaults filled in, than the log takes. Nothing is changed. */
export class BlueprintTooLarge extends CouncilError<{ blueprintId: string; bytes: number; limit: number }> {
  readonly code = 'blueprint.too-large';
  constructor(data: { blueprintId: string; bytes: number; limit: number }, options?: ErrorOptions) {
    super(`Cannot save blueprint "${data.blueprintId}": ${data.bytes} bytes, at most ${data.limit} fit`, data, options);
  }
}

/** An event of a blueprint's stream cannot be read. The blueprint can still be deleted. */
export class BlueprintCorrupt extends CouncilError<{ blueprintId: string; seq: number; reason: string }> {
  readonly code = 'blueprint.damaged';
  constructor(data: { blueprintId: string; seq: number; reason: string }, options?: ErrorOptions) {
    super(`The record of blueprint "${data.blueprintId}" is damaged at seq ${data.seq}: ${data.reason}`, data, options);
  }
}

/** Others changed it again and again in the meantime, or too many wait to change it. Nothing is changed. */
export class BlueprintContended extends CouncilError<{ blueprintId: string }> {
  readonly code = 'blueprint.contended';
  constructor(data: { blueprintId: string }, options?: ErrorOptions) {
    super(`Cannot change blueprint "${data.blueprintId}": others keep changing it`, data, options);
  }
}

/** A call to the model gave nothing usable. `kind` names what happened; retryable ones may be asked again in time. */
export class ModelFailed extends CouncilError<ModelFault> {
  readonly code = 'model.failed';
}

export interface ModelFault {
  readonly kind: string;
  readonly retryable: boolean;
  /** How long the provider asked to wait, in milliseconds. */
  readonly retryAfterMs?: number;
  /** The model's server is out; how long the next attempts wait for it to come back, in milliseconds. */
  readonly outageMs?: number;
  /** What the call cost all the same, as far as the provider reported it. */
  readonly usage?: { readonly inputTokens: number; readonly outputTokens: number };
}
