/** Errors of runs. */
import { CouncilError } from '../errors.js';

/** No run has this id. */
export class RunUnknown extends CouncilError<{ runId: string }> {
  readonly code = 'run.unknown';
  constructor(data: { runId: string }) {
    super(`Cannot find run "${data.runId}"`, data);
  }
}

/** When, by whom and why a run was erased. */
export interface Erasure {
  /** ISO 8601. */
  readonly at: string;
  /** Name of the key, `retention`, or null if the service had no keys. */
  readonly by: string | null;
  readonly reason: string | null;
}

/** The run was erased: nothing of it can be read. */
export class RunErased extends CouncilError<{ runId: string; erased: Erasure }> {
  readonly code = 'run.erased';
  constructor(data: { runId: string; erased: Erasure }) {
    super(`Run "${data.runId}" was erased at ${data.erased.at}`, data);
  }
}

/** Whether the record of a run cannot be read any more. Readers of many runs pass over it. */
export function isUnreadable(error: unknown): error is RunCorrupt | RunErased {
  return error instanceof RunCorrupt || error instanceof RunErased;
}

/** The run cannot be erased, because it, or the run whose council has started it, has not ended. */
export class RunUnfinished extends CouncilError<{ runId: string; parent?: string }> {
  readonly code = 'run.unfinished';
  constructor(data: { runId: string; parent?: string }) {
    const { runId, parent } = data;
    const which = parent === undefined ? 'it' : `run "${parent}", which has started it,`;
    super(`Cannot erase run "${runId}": ${which} has not ended`, data);
  }
}

/** The run has ended and cannot change. */
export class RunFinished extends CouncilError<{ runId: string; status: string; action: string }> {
  readonly code = 'run.finished';
  constructor(data: { runId: string; status: string; action: string }) {
    super(`Cannot ${data.action} run "${data.runId}": it is ${data.status}`, data);
  }
}

/** Only its parent cancels a run that a council has started. */
export class ChildNotCancelled extends CouncilError<{ runId: string; parent: string }> {
  readonly code = 'run.child';
  constructor(data: { runId: string; parent: string }) {
    super(`Run "${data.runId}" belongs to run "${data.parent}", which waits for it: cancel that one`, data);
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

/** The person who decides has seen another draft than that of the pause. The pause stays open. */
export class AnotherDraftSeen extends CouncilError<{ runId: string }> {
  readonly code = 'run.another-draft-seen';
  constructor(data: { runId: string }) {
    super(
      `Cannot decide on run "${data.runId}": \`review.draft_sha256\` is not the hash of the draft that waits`,
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
