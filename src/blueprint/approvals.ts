/** What is odd about who is to decide the pauses of a council's runs; nothing of it keeps a run from starting. */
import type { Blueprint } from '../generated/schemas.js';
import { oddities } from '../graph/approvals.js';
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
    said === undefined ? [] : oddities(said, hasKeys).map((message) => warning(path, message, node)),
  );
}
