/** Approval rules of a graph: who decides the pause before nodes, how many of them, and until when. */
import type { ApprovalDeadline, Approvals, Graph } from '../generated/schemas.js';

/** An approval rule with its defaults. */
export interface ApprovalRule {
  /** Names of keys and scopes such as `scope:approve`, or null if every approver may decide. */
  readonly by: readonly string[] | null;
  readonly notByStarter: boolean;
  /** How many different approvers must agree. */
  readonly quorum: number;
  readonly deadline: ApprovalDeadline | null;
}

/** Any approver decides alone, at any time. */
export const NO_RULE: ApprovalRule = { by: null, notByStarter: false, quorum: 1, deadline: null };

const SCOPE = 'scope:';
/** The scope of every approver. */
const ANY_APPROVER = `${SCOPE}approve`;

/**
 * The rule of the pause before these nodes, or null if there is none. A node's own rule replaces the graph's. The rules of
 * several nodes are combined (see `strictest`).
 */
export function approvalRule({ nodes, approvals }: Graph, next: readonly string[]): ApprovalRule | null {
  const rules = next.map((id) => nodes.find((node) => node.id === id)?.approvals ?? approvals);
  if (rules.every((each) => each === undefined || Object.keys(each).length === 0)) return null;
  return rules.map(ruleOf).reduce(strictest);
}

function ruleOf({ by, not_by_starter: notByStarter = false, quorum = 1, deadline }: Approvals = {}): ApprovalRule {
  return { by: by ?? null, notByStarter, quorum, deadline: deadline ?? null };
}

/** The rule that satisfies both: the approvers in both lists, the larger quorum and the stricter deadline. */
export function strictest(a: ApprovalRule, b: ApprovalRule): ApprovalRule {
  return {
    by: commonApprovers(a.by, b.by),
    notByStarter: a.notByStarter || b.notByStarter,
    quorum: Math.max(a.quorum, b.quorum),
    deadline: strictestDeadline(a.deadline, b.deadline),
  };
}

/** Approvers in both lists. The holders of a scope are unknown here, so a scope must be in both lists, too. */
function commonApprovers(a: ApprovalRule['by'], b: ApprovalRule['by']): ApprovalRule['by'] {
  if (a === null || a.includes(ANY_APPROVER)) return b ?? a;
  if (b === null || b.includes(ANY_APPROVER)) return a;
  return a.filter((each) => b.includes(each));
}

/** The earlier deadline that does not approve, a rejection if both are equal. The later one if both approve. */
function strictestDeadline(a: ApprovalRule['deadline'], b: ApprovalRule['deadline']): ApprovalRule['deadline'] {
  const both = [a, b].flatMap((each) => (each === null ? [] : [each]));
  const strict = both.filter(({ then }) => then !== 'approve').sort(byStrictness);
  const [first] = strict;
  if (first !== undefined) return first;
  return a === null || b === null ? null : a.after_ms >= b.after_ms ? a : b;
}

function byStrictness(a: ApprovalDeadline, b: ApprovalDeadline): number {
  return a.after_ms - b.after_ms || Number(b.then === 'reject') - Number(a.then === 'reject');
}

/** Whether a rule needs approvers with names: without keys the service has none. */
export function needsName({ by, notByStarter, quorum }: Pick<ApprovalRule, 'by' | 'notByStarter' | 'quorum'>): boolean {
  return by !== null || notByStarter || quorum > 1;
}

/** The scope in a list entry, or null if the entry is a name. */
export function scopeIn(approver: string): string | null {
  return approver.startsWith(SCOPE) ? approver.slice(SCOPE.length) : null;
}

/** A deadline that approves sooner gets a warning, in milliseconds (contract, section 5). */
const SHORTEST_APPROVING_MS = 60_000;

/** Warnings about a rule, as sentences. They do not prevent a run. */
export function ruleWarnings(approvals: Approvals, hasKeys: boolean): readonly string[] {
  const rule = ruleOf(approvals);
  const { by, quorum, deadline } = rule;
  const then = deadline?.then;
  const escalated = typeof then === 'object' ? then.escalate : null;
  const isTooFew = (list: readonly string[] | null): boolean =>
    list !== null && list.every((each) => scopeIn(each) === null) && new Set(list).size < quorum;
  return [
    ...(!hasKeys && needsName(rule)
      ? ['The service has no keys, and this rule needs approvers with names: only a deadline can end the pause']
      : []),
    ...([by, escalated].some(isTooFew)
      ? [`It needs ${quorum} approvers but names fewer, so the quorum cannot be reached`]
      : []),
    ...(then === 'approve' && deadline !== null && deadline.after_ms < SHORTEST_APPROVING_MS
      ? [`Its deadline approves after ${deadline.after_ms} ms, sooner than a person can read the draft`]
      : []),
  ];
}
