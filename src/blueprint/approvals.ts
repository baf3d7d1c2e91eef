/** What is odd about who is to decide the pauses of a council's runs; nothing of it keeps a run from starting. */
import type { Approvals, Blueprint } from '../generated/schemas.js';
import { ruleWarnings, scopeIn } from '../graph/approvals.js';
import { isScope } from '../keys/caller.js';
import { isKeyName } from '../keys/key-request.js';
import type { GraphIssue } from './validate.js';
import { warning } from './validate.js';

/** @param hasKeys whether the service has keys: approvers are known by the names of theirs */
export function approvalIssues(
  { approvals, nodes }: Pick<Blueprint, 'nodes' | 'approvals'>,
  hasKeys: boolean,
): readonly GraphIssue[] {
  const places = [
    { path: 'approvals', node: null, said: approvals },
    ...nodes.map((node, index) => ({ path: `nodes[${index}].approvals`, node: node.id, said: node.approvals })),
  ];
  return places.flatMap(({ path, node, said }) =>
    said === undefined
      ? []
      : [...ruleWarnings(said, hasKeys), ...unknownApprovers(said)].map((message) => warning(path, message, node)),
  );
}

/** Approvers that no key can ever be, such as a scope with a typing error. */
function unknownApprovers({ by = [], deadline }: Approvals): readonly string[] {
  const then = deadline?.then;
  const asked = [...by, ...(typeof then === 'object' ? then.escalate : [])];
  return asked.flatMap((approver) => {
    const scope = scopeIn(approver);
    const isPossible = scope === null ? isKeyName(approver) : isScope(scope);
    return isPossible ? [] : [`Among the approvers nobody can be "${approver}": it is no name of a key, and no scope`];
  });
}
