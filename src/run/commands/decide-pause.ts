/**
 * Decides a pause: by a human, by the votes of several, or by its deadline. Of concurrent decisions on one pause, at any
 * instance, the first append at its revision wins.
 */
import { KeyReused, PauseMoved, RunNotPaused } from '../errors.js';
import type { Caller } from '../../keys/caller.js';
import type { GateChoice } from '../../generated/schemas.js';
import { handleCommand } from '../../eventsourcing/handle-command.js';
import type { RunFact } from '../events.js';
import type { DecisionOutcome } from '../human-decision.js';
import { VOTED, assertApprover, effectiveChoice, factsOfDecision, outcomeOf, passDeadline } from '../human-decision.js';
import type { DecisionContext } from '../pending-events.js';
import type { KeyedDecision, RunPause, RunState } from '../state.js';
import { openPauseOf } from '../state.js';
import type { Replay } from '../replay.js';
import { BoundedMap } from '../../system/bounded-map.js';
import { deadlineOf } from '../approvals.js';

/** A request for a decision on a paused run, or a vote on it. */
export interface DecisionRequest {
  /** The caller that decides or votes. */
  readonly caller: Caller;
  readonly comment: string | null;
  /** SHA-256 of the Idempotency-Key. */
  readonly keyHash: string | null;
  readonly bodyHash: string;
  /** The body hash that earlier versions, which hashed bodies as sent, recorded for an equal request. */
  readonly sentHash?: string;
  /** Revision of the pause it answers; null: the open one. */
  readonly expectedSeq: number | null;
  /** Reads the choice; called only once the run is known to be paused. If it throws, nothing is recorded. */
  readonly choose: () => GateChoice;
}

/** The outcome of a decision, made by this request or by an equal one before it. */
export interface DecisionAnswer extends DecisionOutcome {
  readonly isRepeated: boolean;
}

/** What the registry provides. */
export interface DecidePauseDeps {
  readonly context: () => DecisionContext;
  /** The run as it is recorded; null when there is none. */
  readonly replay: () => Promise<Replay | null>;
  /** @throws {RevisionConflict} when another append came first */
  readonly record: (replayed: Replay, facts: readonly RunFact[]) => Promise<void>;
  readonly repeatedVotes: RepeatedVotes;
}

/**
 * Records a decision on the open pause. A repeated Idempotency-Key gets its earlier answer, whatever the run's state.
 *
 * @throws {KeyReused | RunNotPaused | NotApprover | PauseMoved | OverrideRefused} or what `choose` throws; nothing is recorded
 */
export async function decidePause(
  runId: string,
  request: DecisionRequest,
  deps: DecidePauseDeps,
): Promise<DecisionAnswer> {
  const { repeatedVotes } = deps;
  const { keyHash, bodyHash } = request;
  let answers: number | null = null;
  return await handleCommand({
    read: deps.replay,
    decide(replayed) {
      const earlier = replayed === null ? null : decidedBefore(replayed.snapshot.context.run, request, repeatedVotes);
      if (earlier !== null) return { outcome: earlier, decided: null };
      const paused = pausedOf(replayed);
      const status = replayed?.snapshot.context.run.phase.status ?? 'unknown';
      if (paused === null) throw new RunNotPaused({ runId, status });
      // Another decision was recorded first: the pause now open is not the one this request was about.
      if (answers !== null && paused.pause.seq !== answers)
        throw new RunNotPaused({ runId, status: 'decided already' });
      answers = paused.pause.seq;
      const decision = decisionOn(paused, { runId, request, context: deps.context() });
      if (decision.decided === null && keyHash !== null) {
        repeatedVotes.remember(runId, { keyHash, bodyHash, action: request.choose().action, isVote: true });
      }
      return decision;
    },
    async append({ outcome, decided }) {
      if (decided !== null) await deps.record(decided.replayed, decided.facts);
      return { ...outcome, isRepeated: decided === null };
    },
  });
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
  /** Null: it is recorded already. */
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
  const { caller, comment, keyHash, bodyHash, expectedSeq, choose } = request;
  const { run } = replayed.snapshot.context;
  assertApprover(run, pause, { caller });
  const choice = effectiveChoice(run, pause, choose());
  if (expectedSeq !== null && expectedSeq !== pause.seq) {
    throw new PauseMoved({ runId, expectedSeq, actualSeq: pause.seq });
  }
  const decision = { ...choice, caller, comment, keyHash, bodyHash };
  const facts = factsOfDecision(replayed.chart, replayed.snapshot, { decision, context });
  const isVote = facts.every(({ type }) => type === 'VoteCast');
  return {
    outcome: isVote ? VOTED : outcomeOf(choice.action),
    decided: facts.length === 0 ? null : { replayed, facts },
  };
}

/**
 * The outcome of an earlier decision with this key; null when there was none, or no key is given.
 *
 * @throws {KeyReused} when its body was another
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

/** Most votes remembered; beyond that the oldest is forgotten, and refused if repeated once its pause is decided. */
const MAX_REMEMBERED = 1_000;

/**
 * Votes cast again under a new Idempotency-Key. Nothing is appended for them, so the key is known only here, and its
 * answer is repeated as long as it is remembered.
 */
export interface RepeatedVotes {
  /** The run's remembered votes, in the form of recorded ones. */
  of(runId: string, keyHash: string | null): readonly KeyedDecision[];
  remember(runId: string, vote: KeyedDecision): void;
}

export function repeatedVotes(max = MAX_REMEMBERED): RepeatedVotes {
  const votes = new BoundedMap<string, KeyedDecision>(max);
  const nameOf = (runId: string, keyHash: string): string => `${runId} ${keyHash}`;
  return {
    of(runId, keyHash) {
      const vote = keyHash === null ? undefined : votes.get(nameOf(runId, keyHash));
      return vote === undefined ? [] : [vote];
    },
    remember(runId, vote) {
      votes.set(nameOf(runId, vote.keyHash), vote);
    },
  };
}

/** What the registry provides for a deadline that has passed. */
export interface PassDeadlineDeps {
  readonly context: () => DecisionContext;
  /** The run as it is recorded; null when there is none. */
  readonly replay: () => Promise<Replay | null>;
  /**
   * Appends facts that were decided at a time; false when the run would have to go on and there is no room.
   *
   * @throws {RevisionConflict} when another append came first
   */
  readonly record: (replayed: Replay, facts: readonly RunFact[], at: string) => Promise<boolean>;
}

/** Acts on the deadline. Resolves with the one that is open afterwards, ISO 8601: its time has not come, or there was no room; null: none. */
export async function passPauseDeadline({ context, replay, record }: PassDeadlineDeps): Promise<string | null> {
  return await handleCommand({
    read: replay,
    decide(replayed) {
      const now = context();
      const facts = replayed === null ? [] : passDeadline(replayed.chart, replayed.snapshot, now);
      return { replayed, facts, at: now.at };
    },
    async append({ replayed, facts, at }) {
      if (replayed === null) return null;
      if (facts.length > 0 && (await record(replayed, facts, at))) return null;
      const { run } = replayed.snapshot.context;
      const pause = openPauseOf(run);
      return pause === null ? null : deadlineOf(run, pause);
    },
  });
}
