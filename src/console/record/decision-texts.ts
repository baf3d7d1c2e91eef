/** Texts about the decisions of a user on pauses. */
import type { Approval, ApprovalGone, GateAction } from '../../generated/schemas.js';
import { excerpt } from './counts.js';
import { agoText } from './durations.js';

export interface DecidedTopic {
  readonly topic: string;
  readonly action: GateAction;
}

/** What a decision did or will do, such as `Approved “The sea”: Reviewer starts`. @param effect its last part */
export function doneText({ topic, action }: DecidedTopic, effect: string): string {
  return `${DONE[action]} ${quoted(topic)}: ${effect}`;
}

const DONE = { approve: 'Approved', reject: 'Rejected', modify: 'Edited' } as const;

/** What did not happen, such as `“The sea” was not approved`. */
export function notDoneText({ topic, action }: DecidedTopic): string {
  return `${quoted(topic)} was not ${NOT_DONE[action]}`;
}

const NOT_DONE = { approve: 'approved', reject: 'rejected', modify: 'edited' } as const;

/** What happened to a pause before the user's decision came. @param gone or null if that is not known */
export function tooLateText({ topic, action }: DecidedTopic, gone: ApprovalGone | null, nowMs: number): string {
  const outcome =
    gone === null ? `another user has already decided ${quoted(topic)}.` : outcomeText(topic, gone, nowMs);
  return `Too late: ${outcome} Your ${NOUNS[action]} was not recorded.`;
}

const NOUNS = { approve: 'approval', reject: 'rejection', modify: 'edit' } as const;

/** What happened to a pause, such as `ann approved “The sea” 3 min ago.` @param nowMs the service's time */
export function outcomeText(topic: string, { actor, outcome, at }: ApprovalGone, nowMs: number): string {
  const ago = agoText(nowMs - Date.parse(at));
  return actor === null
    ? `${quoted(topic)} was ${OUTCOMES[outcome]} ${ago}.`
    : `${actor} ${OUTCOMES[outcome]} ${quoted(topic)} ${ago}.`;
}

const OUTCOMES: Readonly<Record<ApprovalGone['outcome'], string>> = {
  approve: 'approved',
  reject: 'rejected',
  modify: 'edited',
  failed: 'ended',
  escalated: 'escalated',
};

/** What a decision on a pause does. @param next labels of the members that wait */
export function effectText(
  action: GateAction,
  { next, isVote }: { readonly next: readonly string[]; readonly isVote: boolean },
): string {
  if (action === 'reject') return 'the run ends';
  if (isVote) return 'your vote counts';
  if (next.length === 0) return 'the run continues';
  return `${next.join(' and ')} ${next.length === 1 ? 'starts' : 'start'}`;
}

export function quoted(topic: string): string {
  return `“${excerpt(topic, 60)}”`;
}

/** What happens at the deadline of a pause. */
export function deadlineText(then: Approval['deadline_then'] | null): string {
  if (then !== null && typeof then === 'object') return `then ${then.escalate.join(', ')} may decide`;
  return then === 'approve' ? 'then the run is approved' : 'then the run is rejected';
}
