/** The members of panels, ranks and juries: their defaults, their part of a run's graph, and warnings about them. */
import { rolesOf } from '../council/roles.js';
import type {
  BlueprintCreate,
  GraphMember,
  GraphNode,
  NodeRole,
  SavedMember,
  SavedNode,
} from '../generated/schemas.js';
import { labelInOneLine } from '../graph/label.js';
import { edgesBySource, reachableFrom } from '../graph/traversal.js';
import { elementAt } from '../system/element.js';
import type { CouncilGraph, GraphIssue } from './validate.js';
import { entryOf, quotedId, warning } from './validate.js';

type DraftNode = BlueprintCreate['nodes'][number];

/** Default of `graceMs`: milliseconds that the other members have once the quorum has answered. */
const GRACE_MS = 30_000;

/** Members with their ids and labels. Other fields stay absent: a run takes them from the node. */
export function savedMembers(members: NonNullable<DraftNode['members']>): SavedMember[] {
  return members.map((member, index) => {
    const given = typeof member === 'string' ? { model: member } : member;
    const id = given.id ?? `m${index + 1}`;
    return { ...given, id, label: given.label ?? labelInOneLine(id) };
  });
}

type MemberFields = Pick<GraphNode, 'members' | 'quorum' | 'graceMs' | 'keep' | 'aggregate'>;

/** What the graph of a run records about the members of a node. Fields without a meaning in the role are left out. */
export function graphMembers(node: SavedNode, role: NodeRole): MemberFields {
  const { keep, quorum, graceMs = GRACE_MS, aggregate = 'median' } = node;
  const uses = fieldsUsed(node, role);
  return {
    ...(uses.members && hasMembers(node) && { members: node.members.map(graphMember) }),
    ...(uses.quorum && quorum !== undefined && { quorum }),
    ...(uses.graceMs && { graceMs }),
    ...(uses.keep && keep !== undefined && { keep }),
    ...(uses.aggregate && { aggregate }),
  };
}

/** A member as a run records it: known fields only. */
export function graphMember(member: SavedMember): GraphMember {
  const { id, label, model, systemPrompt, temperature, maxOutputTokens, fallbacks } = member;
  return {
    id,
    label,
    ...(model !== undefined && { model }),
    ...(systemPrompt !== undefined && { systemPrompt }),
    ...(temperature !== undefined && { temperature }),
    ...(maxOutputTokens !== undefined && { maxOutputTokens }),
    ...(fallbacks !== undefined && { fallbacks }),
  };
}

/** Which fields have a meaning in a node. An empty list of members counts as none. */
function fieldsUsed(node: SavedNode, role: NodeRole): Readonly<Record<keyof MemberFields, boolean>> {
  const isJury = role === 'critic' && hasMembers(node);
  const hasQuorum = role === 'panel' || isJury;
  return {
    members: role === 'panel' || role === 'rank' || role === 'critic',
    quorum: hasQuorum,
    graceMs: hasQuorum,
    keep: role === 'rank',
    aggregate: isJury,
  };
}

function hasMembers(node: SavedNode): node is SavedNode & { members: SavedMember[] } {
  return node.members !== undefined && node.members.length > 0;
}

/** The end of a warning about an ignored field: the roles that use it. */
const USERS: Readonly<Record<keyof MemberFields, string>> = {
  members: 'only panels, ranks and critics have members',
  quorum: 'only panels and critics with members use it',
  graceMs: 'only panels and critics with members use it',
  keep: 'only ranks use it',
  aggregate: 'only critics with members use it',
};

const FIELDS = ['members', 'quorum', 'graceMs', 'keep', 'aggregate'] as const;

/** Warnings about fields that a run ignores, and about ranks and judges that no panel comes before. */
export function memberIssues(graph: CouncilGraph): readonly GraphIssue[] {
  const { nodes } = graph;
  if (nodes.length === 0) return [];
  const roles = rolesOf(graph).map(({ role }) => role);
  const hasPanelBefore = nodesAfterPanels(graph, roles);
  return nodes.flatMap((node, index) => {
    const role = elementAt(roles, index);
    const uses = fieldsUsed(node, role);
    const ignored = FIELDS.filter((field) => isGiven(node, field) && !uses[field]);
    const path = `nodes[${index}]`;
    const name = quotedId(node.id);
    return [
      ...ignored.map((field) =>
        warning(`${path}.${field}`, `Node ${name} has the role ${role}: ${field} is ignored, ${USERS[field]}`, node.id),
      ),
      ...(uses.members ? sharedLabels(node, `${path}.members`) : []),
      ...((role === 'rank' || role === 'judge') && !hasPanelBefore.has(node.id)
        ? [warning(path, `No path from the entry leads through a panel to the ${role} ${name}`, node.id)]
        : []),
    ];
  });
}

/** A warning for each member with the label of an earlier one. */
function sharedLabels({ id, members = [] }: SavedNode, path: string): readonly GraphIssue[] {
  return members.flatMap((member, index) => {
    const other = members.slice(0, index).find(({ label }) => label === member.label);
    if (other === undefined) return [];
    const both = `Members ${quotedId(other.id)} and ${quotedId(member.id)} of node ${quotedId(id)}`;
    return [warning(`${path}[${index}].label`, `${both} have the same label: drafts and feedback name them alike`, id)];
  });
}

function isGiven(node: SavedNode, field: keyof MemberFields): boolean {
  return field === 'members' ? hasMembers(node) : node[field] !== undefined;
}

/** The nodes to which a path from the entry leads through a panel. */
function nodesAfterPanels(graph: CouncilGraph, roles: readonly NodeRole[]): ReadonlySet<string> {
  const { nodes, edges } = graph;
  const outgoing = edgesBySource(edges);
  const entry = elementAt(nodes, entryOf(graph)).id;
  const reached = reachableFrom(entry, outgoing).add(entry);
  const panels = nodes.filter(({ id }, index) => roles[index] === 'panel' && reached.has(id));
  return new Set(panels.flatMap(({ id }) => [...reachableFrom(id, outgoing)]));
}
