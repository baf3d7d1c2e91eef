/** The members of panels, ranks and juries, and the settings of their steps. */
import type { GraphMember, GraphNode } from '../../generated/schemas.js';
import type { Plan } from '../../graph/plan.js';
import type { Branch } from '../frontier/branch.js';
import type { FrontierNode, Seat } from '../state.js';

/** Whether a node has members that answer in steps of their own. */
export function hasMembers({ role, members }: GraphNode): boolean {
  return role === 'panel' || role === 'rank' || (role === 'critic' && members !== undefined);
}

/** Whether a node reads the answers of a panel, whatever the draft is. */
export function readsPanel({ role }: GraphNode): boolean {
  return role === 'rank' || role === 'judge';
}

/** Whether a panel has closed on a branch. */
export function hasPanel({ deliberation }: Branch): boolean {
  return (deliberation?.panel ?? null) !== null;
}

/** A step's place in the run, as far as its node and prompt depend on it. */
export type StepPlace = Pick<FrontierNode, 'node' | 'branch'> & { readonly member: string | null };

/** The members of a node; the reviewers of a rank without members are those of the panel that it reviews. */
export function membersOf(plan: Plan, { node, branch }: Pick<StepPlace, 'node' | 'branch'>): readonly GraphMember[] {
  const { members, role } = plan.node(node);
  if (members !== undefined) return members;
  const panel = branch.deliberation?.panel ?? null;
  if (role !== 'rank' || panel === null) return [];
  const reviewed = plan.node(panel.node);
  return (reviewed.members ?? []).map((member) => reviewerOf(reviewed, member));
}

/** The seat of a member that has not answered yet. */
export function emptySeat(member: string, panelStep: number): Seat {
  return { member, panelStep, until: null, output: null, error: null };
}

/** A panel's member as a reviewer: only its model, temperature, limit and fallbacks count. */
function reviewerOf(panel: GraphNode, { id, label, systemPrompt: _, ...own }: GraphMember): GraphMember {
  const { model, temperature, maxOutputTokens, fallbacks } = panel;
  const inherited = {
    ...(model !== undefined && { model }),
    ...(temperature !== undefined && { temperature }),
    ...(maxOutputTokens !== undefined && { maxOutputTokens }),
    ...(fallbacks !== undefined && { fallbacks }),
  };
  return { id, label, ...inherited, ...own };
}

/** The node of a step, with the settings of its member. Prompts never name a member, so the label stays the node's. */
export function stepNode(plan: Plan, at: StepPlace): GraphNode {
  const node = plan.node(at.node);
  if (at.member === null) return node;
  const member = membersOf(plan, at).find(({ id }) => id === at.member);
  if (member === undefined) throw new Error(`Node "${at.node}" has no member "${at.member}"`);
  // Each object that two spreads make has a hidden class of its own in V8, which takes 0.3 kB of each call in flight.
  return Object.assign({}, node, member, { id: node.id, label: node.label });
}
