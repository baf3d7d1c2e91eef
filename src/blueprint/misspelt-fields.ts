/** Warnings about fields of nodes and members that have no effect because their names are misspelt. */
import type { SavedMember, SavedNode } from '../generated/schemas.js';
import type { CouncilGraph, GraphIssue } from './validate.js';
import { quotedId, warning } from './validate.js';

/** The fields of a member. A node has them too. */
const OF_MEMBERS = ['id', 'label', 'model', 'systemPrompt', 'temperature', 'maxOutputTokens', 'fallbacks'] as const;
const OF_NODES = [
  ...OF_MEMBERS,
  ...(['type', 'tools', 'position', 'timeoutMs', 'maxAttempts', 'approvals', 'members'] as const),
  ...(['quorum', 'graceMs', 'keep', 'aggregate', 'material', 'schema'] as const),
  ...(['council', 'topic', 'for_each', 'max_parallel', 'on_error'] as const),
] as const;

// The compiler refuses a name that is no field.
OF_MEMBERS satisfies readonly (keyof SavedMember)[];
OF_NODES satisfies readonly (keyof SavedNode)[];

/** Warnings about unknown fields whose names are nearly those of known ones; other unknown fields belong to front ends. */
export function misspeltFields({ nodes }: Pick<CouncilGraph, 'nodes'>): readonly GraphIssue[] {
  return nodes.flatMap((node, index) => {
    const path = `nodes[${index}]`;
    const name = `Node ${quotedId(node.id)}`;
    const members = (node.members ?? []).flatMap((member, at) => {
      const whose = `Member ${quotedId(member.id)} of node ${quotedId(node.id)}`;
      return issuesOf(member, OF_MEMBERS, { path: `${path}.members[${at}]`, whose, node: node.id });
    });
    return [...issuesOf(node, OF_NODES, { path, whose: name, node: node.id }), ...members];
  });
}

function issuesOf(
  given: object,
  known: readonly string[],
  { path, whose, node }: { readonly path: string; readonly whose: string; readonly node: string },
): readonly GraphIssue[] {
  return Object.keys(given).flatMap((field) => {
    const meant = known.includes(field) ? undefined : known.find((each) => isMeant(each, field));
    if (meant === undefined) return [];
    return [warning(path, `${whose}: the field ${quotedId(field)} has no effect. Is ${meant} meant?`, node)];
  });
}

/** Whether two names differ in case, underscores and hyphens alone, or in one letter. */
function isMeant(known: string, given: string): boolean {
  const [a, b] = [known.toLowerCase(), given.toLowerCase().replaceAll(/[_-]/g, '')];
  if (a === b) return true;
  const shorter = Math.min(a.length, b.length);
  let start = 0;
  while (start < shorter && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < shorter - start && a.at(-1 - end) === b.at(-1 - end)) end += 1;
  return shorter >= 5 && Math.max(a.length, b.length) - start - end === 1;
}
