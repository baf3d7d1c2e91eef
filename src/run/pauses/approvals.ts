/** The approvers of a run's open pause, and its votes so far. */
import { canonical } from '../../eventsourcing/canonical-json.js';
import type { GateChoice, GateDecidedData, PauseEscalatedData, VoteCastData } from '../../generated/schemas.js';
import type { ApprovalRule } from '../../graph/approvals.js';
import { approvalRule, needsName, NO_RULE, scopeIn, strictest } from '../../graph/approvals.js';
import type { Caller } from '../../keys/caller.js';
import type { RunPause, RunState, Vote } from '../state.js';
import { openPauseOf } from '../state.js';

/**
 * The approval rule of a pause, or null if it has none: a pause for the budget has none. After an escalation, the new approvers replace the rule's, without
 * a deadline.
 *
 * @param chosen nodes that an override leads to instead of those shown: their rules count too
 */
export function ruleAt({ plan }: RunState, pause: RunPause, chosen: readonly string[] = []): ApprovalRule | null {
  if (pause.reason === 'budget') return null;
  const shown = approvalRule(plan.graph, pause.nextNodes);
  const { escalatedTo: by } = pause;
  const now = by === null ? shown : { ...(shown ?? NO_RULE), by, deadline: null };
  const others = chosen.filter((node) => !pause.nextNodes.includes(node));
  const further = others.length === 0 ? null : approvalRule(plan.graph, others);
  if (further === null) return now;
  return strictest(now ?? NO_RULE, { ...further, deadline: now?.deadline ?? null });
}

/** The part of a rule that concerns approvers. */
export type ApproverRule = Pick<ApprovalRule, 'by' | 'notByStarter' | 'quorum'>;

/** Who started a run and the runs that it descends from. */
export interface Started {
  readonly actor: string | null;
  readonly earlierStarters?: readonly string[] | undefined;
}

/** The names of the keys that `not_by_starter` excludes: the starters of a run and of all runs that it was forked from. */
export function startersOf({ actor, earlierStarters = [] }: Started): readonly string[] {
  return actor === null ? earlierStarters : [actor, ...earlierStarters.filter((name) => name !== actor)];
}

/** Why a rule does not let a caller decide, or null if it does. */
export function refusalOf(started: Started, rule: ApproverRule | null, { actor, scopes }: Caller): string | null {
  if (rule === null || !needsName(rule)) return null;
  if (actor === null) return 'it asks for approvers by name, and the service has no keys';
  const isIn = rule.by?.some((each) => each === actor || holds(scopes, scopeIn(each))) ?? true;
  if (!isIn) return `"${actor}" is not among its approvers: ${rule.by?.join(', ')}`;
  if (!rule.notByStarter || !startersOf(started).includes(actor)) return null;
  return `"${actor}" has started the run${started.actor === actor ? '' : ' that it was forked from'}`;
}

function holds(scopes: ReadonlySet<string>, scope: string | null): boolean {
  return scope !== null && scopes.has(scope);
}

/** Whether a caller may decide or vote on the run's open pause; false if no pause is open. */
export function mayDecide(run: RunState, caller: Caller): boolean {
  const pause = openPauseOf(run);
  return pause !== null && isApprover(run.request, ruleAt(run, pause), caller);
}

/** Whether a rule lets a caller decide. */
export function isApprover(started: Started, rule: ApproverRule | null, caller: Caller): boolean {
  return caller.scopes.has('approve') && refusalOf(started, rule, caller) === null;
}

/** When an undecided pause ends, ISO 8601, counted from its recorded time, or null if it has no deadline. */
export function deadlineOf(run: RunState, pause: RunPause): string | null {
  const deadline = ruleAt(run, pause)?.deadline ?? null;
  const due = new Date(Date.parse(pause.pausedAt) + (deadline?.after_ms ?? Number.NaN));
  // A forged record may contain an invalid time.
  return Number.isNaN(due.getTime()) ? null : due.toISOString();
}

// Votes: the same choice of several approvers.

/** The pause's votes after one more: a different choice restarts the count. */
export function withVote(votes: readonly Vote[], vote: Vote): readonly Vote[] {
  return [...votesFor(votes, vote.choice), vote];
}

/** The pause's votes if they are for this choice; otherwise empty. */
export function votesFor(votes: readonly Vote[], choice: GateChoice): readonly Vote[] {
  return votes.every((vote) => isSame(vote.choice, choice)) ? votes : [];
}

/** Whether two choices have the same effect. The override of an approval has none, and neither has an empty one. */
function isSame(a: GateChoice, b: GateChoice): boolean {
  if (a.action !== b.action) return false;
  return a.action !== 'modify' || canonical(a.modifiedState ?? {}) === canonical(b.modifiedState ?? {});
}

// Checks of recorded events. The scopes of an approver are not recorded, so an entry with a scope accepts every actor.

/** Whether a vote may be recorded: by an approver who has not cast the same vote before. */
export function isVoteAllowed(run: RunState, { gate, actor, ...choice }: VoteCastData): boolean {
  const pause = openPauseOf(run);
  if (pause?.number !== gate || actor === null || !isListed(run, ruleAt(run, pause) ?? NO_RULE, actor)) return false;
  const before = votesFor(pause.votes, choice);
  return before.every((vote) => vote.actor !== actor) && choice.action !== 'reject';
}

/** Whether a decision may be recorded: by an approver after the quorum's other votes, or by the deadline. */
export function isDecisionAllowed(run: RunState, at: string, data: GateDecidedData): boolean {
  const pause = openPauseOf(run);
  if (pause === null) return true;
  if (data.by === 'deadline') {
    return data.actor === null && isDue(run, pause, at) && ruleAt(run, pause)?.deadline?.then === data.action;
  }
  const rule = ruleAt(run, pause, data.nextNodes);
  if (rule === null || !needsName(rule)) return true;
  if (data.actor === null || !isListed(run, rule, data.actor)) return false;
  return data.action === 'reject' || approversOf(pause, data).size >= rule.quorum;
}

/** Whether the open pause may be escalated at a time. */
export function isEscalationAllowed(run: RunState, at: string, { gate, to }: PauseEscalatedData): boolean {
  const pause = openPauseOf(run);
  if (pause?.number !== gate || !isDue(run, pause, at)) return false;
  const then = ruleAt(run, pause)?.deadline?.then;
  return typeof then === 'object' && canonical(then.escalate) === canonical(to);
}

/** Whether a pause's deadline has passed at a time. */
export function isDue(run: RunState, pause: RunPause, at: string): boolean {
  const deadline = deadlineOf(run, pause);
  return deadline !== null && Date.parse(at) >= Date.parse(deadline);
}

/** The approvers who made this choice: earlier voters and its actor. */
export function approversOf(
  pause: RunPause,
  { actor, ...choice }: GateChoice & { readonly actor: string | null },
): ReadonlySet<string | null> {
  return new Set([...votesFor(pause.votes, choice).map((vote) => vote.actor), actor]);
}

function isListed({ request }: RunState, { by, notByStarter }: ApprovalRule, actor: string): boolean {
  if (notByStarter && startersOf(request).includes(actor)) return false;
  return by === null || by.some((each) => each === actor || scopeIn(each) !== null);
}
