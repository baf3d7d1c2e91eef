/** Errors of runs. */
import { CouncilError } from '../errors.js';

/** No run has this id. */
export class RunUnknown extends CouncilError<{ runId: string }> {
  readonly code = 'run.unknown';
  constructor(data: { runId: string }) {
    super(`Cannot find run "${data.runId}"`, data);
  }
}

/** The run has ended and cannot change. */
export class RunFinished extends CouncilError<{ runId: string; status: string; action: string }> {
  readonly code = 'run.finished';
  constructor(data: { runId: string; status: string; action: string }) {
    super(`Cannot ${data.action} run "${data.runId}": it is ${data.status}`, data);
  }
}

/** A run's stream is corrupt: a broken hash chain, or an event that its chart does not allow. */
export class RunCorrupt extends CouncilError<{ runId: string; seq: number; reason: string }> {
  readonly code = 'run.corrupt';
  constructor(data: { runId: string; seq: number; reason: string }, options?: ErrorOptions) {
    super(`The record of run "${data.runId}" is damaged at seq ${data.seq}: ${data.reason}`, data, options);
  }
}

/** The run has no open pause. */
export class RunNotPaused extends CouncilError<{ runId: string; status: string }> {
  readonly code = 'run.not-paused';
  constructor(data: { runId: string; status: string }) {
    super(`Cannot decide on run "${data.runId}": it is not paused in God Mode, it is ${data.status}`, data);
  }
}

/** The approval rule of the pause does not let the caller decide. The pause stays open. */
export class NotApprover extends CouncilError<{ runId: string; actor: string | null; reason: string }> {
  readonly code = 'run.not-approver';
  constructor(data: { runId: string; actor: string | null; reason: string }) {
    super(`Cannot decide on the pause of run "${data.runId}": ${data.reason}`, data);
  }
}

/** The pause accepts no more votes, except one that completes the quorum. A rejection or its deadline can still end it. */
export class VotesUsedUp extends CouncilError<{ runId: string; limit: number }> {
  readonly code = 'run.votes-used-up';
  constructor(data: { runId: string; limit: number }) {
    super(`Cannot vote on the pause of run "${data.runId}": ${data.limit} votes were cast, which is the most`, data);
  }
}

/** The decision is for another pause than the open one. */
export class PauseMoved extends CouncilError<{ runId: string; expectedSeq: number; actualSeq: number }> {
  readonly code = 'run.pause-moved';
  constructor(data: { runId: string; expectedSeq: number; actualSeq: number }) {
    super(
      `Cannot decide on run "${data.runId}": pause at seq ${data.expectedSeq} expected, it is at ${data.actualSeq}`,
      data,
    );
  }
}

/** The run is unknown or was not started in God Mode. */
export class SessionUnknown extends CouncilError<{ runId: string }> {
  readonly code = 'run.session-unknown';
  constructor(data: { runId: string }) {
    super(`Cannot find a God Mode session of run "${data.runId}"`, data);
  }
}

/** The decision does not answer a pause for the budget. The pause stays open. */
export class BudgetRefused extends CouncilError<{ runId: string; loc: readonly string[]; reason: string }> {
  readonly code = 'run.budget-refused';
  constructor(data: { runId: string; loc: readonly string[]; reason: string }) {
    super(`Cannot decide on run "${data.runId}": ${data.reason}`, data);
  }
}

/** The Idempotency-Key was sent with another body before. */
export class KeyReused extends CouncilError<{ runId: string }> {
  readonly code = 'run.key-reused';
  constructor(data: { runId: string }) {
    super('Cannot use this Idempotency-Key again: it was sent with another body', data);
  }
}

/** The limit of pending runs is reached. */
export class TooManyPending extends CouncilError<{ limit: number }> {
  readonly code = 'run.too-many-pending';
  constructor(data: { limit: number }) {
    super(`Cannot take another run: ${data.limit} are pending`, data);
  }
}
