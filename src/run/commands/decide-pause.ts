/**
 * Decides a pause: by a human, by the votes of several, or by its deadline. If instances decide a pause at the same
 * time, the first append at its revision wins.
 */
import { KeyReused, PauseMoved, RunNotPaused } from '../errors.js';
import type { Caller } from '../../keys/caller.js';
import type { BudgetChange, GateChoice } from '../../generated/schemas.js';
import { handleCommand } from '../../eventsourcing/handle-command.js';
import type { RunFact } from '../events.js';
import { claimsRun } from '../events.js';
import type { Admission } from '../live/admission.js';
import type { LiveRuns } from '../live/live-runs.js';
import type { AppendBase, RunRepository } from '../live/run-repository.js';
import type { DecisionOutcome } from '../pauses/human-decision.js';
import {
  VOTED,
  assertApprover,
  effectiveChoice,
  factsOfDecision,
  outcomeOf,
  applyDeadline,
} from '../pauses/human-decision.js';
import type { DecisionContext } from '../pending-events.js';
import type { KeyedDecision, RunPause, RunState } from '../state.js';
import { openPauseOf } from '../state.js';
import type { Replay } from '../replay.js';
import { BoundedMap } from '../../system/bounded-map.js';
import { deadlineOf } from '../pauses/approvals.js';

/** A request for a decision on a paused run, or a vote on it. */
export interface DecisionRequest {
  /** The caller that decides or votes. */
  readonly caller: Caller;
  readonly comment: string | null;
  /** SHA-256 of the Idempotency-Key. */
  readonly keyHash: string | null;
  readonly bodyHash: string;
  /**
   * Hash of the body as sent, which earlier versions recorded: recognizes a request that is repeated after an upgrade.
   */
  readonly sentHash?: string;
  /** Revision of the pause that it answers, or null to answer any open pause. */
  readonly expectedSeq: number | null;
  /** At a pause for the budget: the new totals. */
  readonly budget?: BudgetChange | undefined;
  /** Reads the choice; called only once the run is known to be paused. If it throws, nothing is recorded. */
  readonly choose: () => GateChoice;
}

/** The outcome of a decision, made by this request or by an equal one before it. */
export interface DecisionAnswer extends DecisionOutcome {
  readonly isRepeated: boolean;
}

export interface PauseDecisionsDeps {
  readonly runs: RunRepository;
  readonly admission: Admission;
  readonly liveRuns: LiveRuns;
}

export class PauseDecisions {
  readonly #deps: PauseDecisionsDeps;
  readonly #repeatedVotes = new RepeatedVotes();

  constructor(deps: PauseDecisionsDeps) {
    this.#deps = deps;
  }

  /**
   * Records a decision on the open pause. A repeated Idempotency-Key gets its earlier answer, whatever the run's state.
   *
   * @throws {KeyReused | RunNotPaused | NotApprover | PauseMoved | OverrideRefused | BudgetRefused} or what `choose` throws; nothing is recorded
   */
  async decide(runId: string, request: DecisionRequest): Promise<DecisionAnswer> {
    const { runs } = this.#deps;
    let answers: number | null = null;
    return await handleCommand({
      read: () => this.#load(runId),
      decide: (replayed) => {
        const earlier = replayed && decidedBefore(replayed.snapshot.context.run, request, this.#repeatedVotes);
        if (earlier !== null) return { outcome: earlier, decided: null };
        const paused = pausedOf(replayed);
        const status = replayed?.snapshot.context.run.phase.status ?? 'unknown';
        if (paused === null) throw new RunNotPaused({ runId, status });
        // Another decision was recorded first, so another pause is open than the one that this request answers.
        if (answers !== null && paused.pause.seq !== answers)
          throw new RunNotPaused({ runId, status: 'decided already' });
        answers = paused.pause.seq;
        const decision = decisionOn(paused, { runId, request, context: runs.decisionContext() });
        if (decision.decided === null) this.#repeatedVotes.remember(runId, request);
        return decision;
      },
      append: async ({ outcome, decided }) => {
        if (decided !== null) await this.#append(runId, decided.replayed, decided.facts);
        return { ...outcome, isRepeated: decided === null };
      },
    });
  }

  /**
   * Applies the rule of the open pause's deadline, if it has passed.
   *
   * @returns the deadline of the pause that is open afterwards, ISO 8601, or null if there is none; a deadline that has
   *   passed could not be applied, because no slot is free
   */
  async applyDeadline(runId: string): Promise<string | null> {
    const { runs } = this.#deps;
    return await handleCommand({
      read: () => this.#loadDue(runId),
      decide(replayed) {
        const context = runs.decisionContext();
        const facts = replayed === null ? [] : applyDeadline(replayed.chart, replayed.snapshot, context);
        return { replayed, facts, at: context.at };
      },
      append: async ({ replayed, facts, at }) => {
        if (replayed === null) return null;
        const due = { ...replayed, at, waitsForRoom: true };
        if (facts.length > 0 && (await this.#appendIfFree(runId, due, facts))) return null;
        const { run } = replayed.snapshot.context;
        const pause = openPauseOf(run);
        return pause === null ? null : deadlineOf(run, pause);
      },
    });
  }

  /** Loads a run. If it has an actor here, waits first until the actor has adopted its appends. */
  async #load(runId: string): Promise<Replay | null> {
    const { runs, liveRuns } = this.#deps;
    await liveRuns.actor(runId)?.settled();
    return await runs.load(runId);
  }

  async #loadDue(runId: string): Promise<Replay | null> {
    const { runs, liveRuns } = this.#deps;
    await liveRuns.actor(runId)?.settled();
    runs.assertTakingWork();
    await runs.assertReaches(runId);
    return await runs.loadOnceAvailable(runId);
  }

  /** Appends a human's decision; a run that it resumes takes a slot even if none is free. */
  async #append(runId: string, base: AppendBase, facts: readonly RunFact[]): Promise<void> {
    const takesSlot = claimsRun(facts);
    if (takesSlot) this.#deps.admission.enter();
    await this.#appendWithSlot(takesSlot, { runId, base, facts });
  }

  /** @returns false, and appends nothing, if the run would be resumed and no slot is free */
  async #appendIfFree(runId: string, base: AppendBase, facts: readonly RunFact[]): Promise<boolean> {
    const takesSlot = claimsRun(facts);
    if (takesSlot && !this.#deps.admission.tryEnter()) return false;
    await this.#appendWithSlot(takesSlot, { runId, base, facts });
    return true;
  }

  /** Frees the slot that was taken for an append if nothing is written. */
  async #appendWithSlot(takesSlot: boolean, { runId, base, facts }: PauseAppend): Promise<void> {
    const { runs, admission } = this.#deps;
    try {
      await runs.append(runId, base, facts);
    } catch (error) {
      if (takesSlot) admission.leave();
      throw error;
    }
  }
}

interface PauseAppend {
  readonly runId: string;
  readonly base: AppendBase;
  readonly facts: readonly RunFact[];
}

interface Paused {
  readonly replayed: Replay;
  readonly pause: RunPause;
}

function pausedOf(replayed: Replay | null): Paused | null {
  const pause = replayed === null ? null : openPauseOf(replayed.snapshot.context.run);
  return replayed === null || pause === null ? null : { replayed, pause };
}

interface Decision {
  readonly outcome: DecisionOutcome;
  /** The facts to append, or null if they are recorded already. */
  readonly decided: { readonly replayed: Replay; readonly facts: readonly RunFact[] } | null;
}

function decisionOn(
  { replayed, pause }: Paused,
  {
    runId,
    request,
    context,
  }: { readonly runId: string; readonly request: DecisionRequest; readonly context: DecisionContext },
): Decision {
  const { caller, comment, keyHash, bodyHash, expectedSeq, budget, choose } = request;
  const { run } = replayed.snapshot.context;
  assertApprover(run, pause, { caller });
  const choice = effectiveChoice(run, pause, choose());
  if (expectedSeq !== null && expectedSeq !== pause.seq) {
    throw new PauseMoved({ runId, expectedSeq, actualSeq: pause.seq });
  }
  const decision = { ...choice, caller, comment, keyHash, bodyHash, budget };
  const facts = factsOfDecision(replayed.chart, replayed.snapshot, { decision, context });
  const isVote = facts.every(({ type }) => type === 'VoteCast');
  return {
    outcome: isVote ? VOTED : outcomeOf(choice.action),
    decided: facts.length === 0 ? null : { replayed, facts },
  };
}

/**
 * The outcome of an earlier decision with this key, or null if there was none or no key is given.
 *
 * @throws {KeyReused} when its body differs
 */
function decidedBefore(
  { runId, decisions }: RunState,
  { keyHash, bodyHash, sentHash }: DecisionRequest,
  votes: RepeatedVotes,
): DecisionOutcome | null {
  const earlier = [...decisions, ...votes.of(runId, keyHash)].find((each) => each.keyHash === keyHash);
  if (earlier === undefined) return null;
  if (earlier.bodyHash !== bodyHash && earlier.bodyHash !== sentHash) throw new KeyReused({ runId });
  return earlier.isVote ? VOTED : outcomeOf(earlier.action);
}

/**
 * Most votes remembered; the oldest is forgotten first. A forgotten vote that is repeated after its pause was decided
 * is refused.
 */
const MAX_REMEMBERED = 1_000;

/**
 * Votes that an approver sent again under a new Idempotency-Key. The log records nothing for them, so only memory holds
 * the key: the answer can be repeated as long as the vote is remembered.
 */
class RepeatedVotes {
  readonly #votes = new BoundedMap<string, KeyedDecision>(MAX_REMEMBERED);

  /** The run's remembered votes with a key, in the form of recorded ones. */
  of(runId: string, keyHash: string | null): readonly KeyedDecision[] {
    const vote = keyHash === null ? undefined : this.#votes.get(`${runId} ${keyHash}`);
    return vote === undefined ? [] : [vote];
  }

  remember(runId: string, { keyHash, bodyHash, choose }: DecisionRequest): void {
    if (keyHash === null) return;
    this.#votes.set(`${runId} ${keyHash}`, { keyHash, bodyHash, action: choose().action, isVote: true });
  }
}
