/** The models that a run of a graph may ask. */
import type { Graph, GraphNode } from '../generated/schemas.js';
import { reachedFrom } from './traversal.js';

interface AskingGraph extends Pick<Graph, 'entry'> {
  readonly nodes: readonly Pick<GraphNode, 'id' | 'role' | 'model' | 'fallbacks' | 'members'>[];
  readonly edges: readonly Pick<Graph['edges'][number], 'source' | 'target'>[];
}

/** The models of all nodes that a run may reach, with repetitions; undefined stands for the default model. */
export function modelsAsked({ entry, nodes, edges }: AskingGraph): readonly (string | undefined)[] {
  const reached = reachedFrom(entry, edges);
  return nodes.flatMap((node) => (reached.has(node.id) ? modelsOfNode(node) : []));
}

/** A node whose members all have models never asks its own. The reviewers that a rank does not name are those of a panel. */
function modelsOfNode({ role, model, fallbacks = [], members }: AskingGraph['nodes'][number]) {
  if (members !== undefined) {
    return members.flatMap((member) => [member.model ?? model, ...(member.fallbacks ?? fallbacks)]);
  }
  return role === 'rank' ? [] : [model, ...fallbacks];
}

/** Why a run may not have a budget in US dollars: a sentence. @param model the full name of one without a price */
export function unpricedText(model: string): string {
  return `Model "${model}" has no price: add one to PRICES_FILE, or set a budget in tokens`;
}
