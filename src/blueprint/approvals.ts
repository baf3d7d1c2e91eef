/** Warnings about the approval rules of a council. They do not prevent a run. */
import type { Approvals, Blueprint } from '../generated/schemas.js';
import { ruleWarnings, scopeIn } from '../graph/approvals.js';
import { isScope } from '../keys/caller.js';
import { isKeyName } from '../keys/key-request.js';
import type { GraphIssue } from './validate.js';
import { warning } from './validate.js';

/** @param hasKeys whether the service has keys, whose names identify approvers */
export function approvalIssues(
  { approvals, nodes }: Pick<Blueprint, 'nodes' | 'approvals'>,
  hasKeys: boolean,
): readonly GraphIssue[] {
  const places = [
    { path: 'approvals', node: null, rule: approvals },
    ...nodes.map((node, index) => ({ path: `nodes[${index}].approvals`, node: node.id, rule: node.approvals })),
  ];
  return places.flatMap(({ path, node, rule }) =>
    rule === undefined
      ? []
      : [...ruleWarnings(rule, hasKeys), ...unknownApprovers(rule)].map((message) => warning(path, message, node)),
  );
}

/** Warnings about approvers that no key can match, such as a misspelt scope. */
function unknownApprovers({ by = [], deadline }: Approvals): readonly string[] {
  const then = deadline?.then;
  const asked = [...by, ...(typeof then === 'object' ? then.escalate : [])];
  return asked.flatMap((approver) => {
    const scope = scopeIn(approver);
    const isPossible = scope === null ? isKeyName(approver) : isScope(scope);
    return isPossible ? [] : [`Approver "${approver}" is neither a valid name of a key nor a scope`];
  });
}
