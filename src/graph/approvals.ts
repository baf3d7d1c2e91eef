/** Who decides a pause before nodes of a graph, how many of them, and until when. */
import type { ApprovalDeadline, Approvals, Graph } from '../generated/schemas.js';

/** What holds at a pause, defaults filled in. */
export interface ApprovalRule {
  /** Names of keys, and scopes written as `scope:approve`; null: whoever may approve. */
  readonly by: readonly string[] | null;
  readonly notByStarter: boolean;
  /** Different approvers who must say the same. */
  readonly quorum: number;
  readonly deadline: ApprovalDeadline | null;
}

/** Everybody who may approve decides alone, whenever they like. */
export const NO_RULE: ApprovalRule = { by: null, notByStarter: false, quorum: 1, deadline: null };

const SCOPE = 'scope:';
/** What every approver has. */
const ANY_APPROVER = `${SCOPE}approve`;

/**
 * What holds at the pause before these nodes: a node's own rule in place of the graph's. Of several nodes each rule must
 * be kept, see `strictest`. Null: nothing is said, of any of them.
 */
export function approvalRule({ nodes, approvals }: Graph, next: readonly string[]): ApprovalRule | null {
  const said = next.map((id) => nodes.find((node) => node.id === id)?.approvals ?? approvals);
  if (said.every((each) => each === undefined || Object.keys(each).length === 0)) return null;
  return said.map(ruleOf).reduce(strictest);
}

function ruleOf({ by, not_by_starter: notByStarter = false, quorum = 1, deadline }: Approvals = {}): ApprovalRule {
  return { by: by ?? null, notByStarter, quorum, deadline: deadline ?? null };
}

/**
 * The rule that keeps both: approvers are those of both lists, the larger quorum counts, and a deadline acts as the
 * more careful would (see `strictestDeadline`).
 */
export function strictest(a: ApprovalRule, b: ApprovalRule): ApprovalRule {
  return {
    by: commonApprovers(a.by, b.by),
    notByStarter: a.notByStarter || b.notByStarter,
    quorum: Math.max(a.quorum, b.quorum),
    deadline: strictestDeadline(a.deadline, b.deadline),
  };
}

/** Approvers of both lists. A scope that not every approver has is told from names only by who holds it: it must be in both. */
function commonApprovers(a: ApprovalRule['by'], b: ApprovalRule['by']): ApprovalRule['by'] {
  if (a === null || a.includes(ANY_APPROVER)) return b ?? a;
  if (b === null || b.includes(ANY_APPROVER)) return a;
  return a.filter((each) => b.includes(each));
}

/** The earlier that does not approve, of equal ones a rejection; an approval only if both approve, and then the later. */
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

/** Whether only somebody with a name can decide by a rule: without keys nobody can. */
export function needsName({ by, notByStarter, quorum }: Pick<ApprovalRule, 'by' | 'notByStarter' | 'quorum'>): boolean {
  return by !== null || notByStarter || quorum > 1;
}

/** The scope that an entry of a list of approvers stands for; null: it is a name. */
export function scopeIn(approver: string): string | null {
  return approver.startsWith(SCOPE) ? approver.slice(SCOPE.length) : null;
}

/** What is odd about a rule, as sentences; nothing of it keeps a run from starting. */
export function ruleWarnings(approvals: Approvals, hasKeys: boolean): readonly string[] {
  const rule = ruleOf(approvals);
  const { by, quorum, deadline } = rule;
  const then = deadline?.then;
  const escalated = typeof then === 'object' ? then.escalate : null;
  const isTooFew = (list: readonly string[] | null): boolean =>
    list !== null && list.every((each) => scopeIn(each) === null) && new Set(list).size < quorum;
  return [
    ...(!hasKeys && needsName(rule)
      ? ['The service has no keys, so nobody has the name that it asks for: nobody can decide this pause']
      : []),
    ...([by, escalated].some(isTooFew)
      ? [`It asks for ${quorum} approvers and names fewer: they are never enough`]
      : []),
  ];
}
