/** The models that a graph names, and which of them its runs may ask. */
import type { Graph, GraphNode } from '../generated/schemas.js';
import { reachedFrom } from './traversal.js';

interface AskingGraph extends Pick<Graph, 'entry'> {
  readonly nodes: readonly Pick<GraphNode, 'id' | 'role' | 'model' | 'fallbacks' | 'members' | 'council'>[];
  readonly edges: readonly Pick<Graph['edges'][number], 'source' | 'target'>[];
}

/** The models of all nodes that a run may reach, with repetitions; undefined stands for the default model. */
export function modelsAsked({ entry, nodes, edges }: AskingGraph): readonly (string | undefined)[] {
  const reached = reachedFrom(entry, edges);
  return nodes.flatMap((node) => (reached.has(node.id) ? modelsOfNode(node) : []));
}

/** A node whose members all have models never asks its own. The reviewers that a rank does not name are those of a panel. */
function modelsOfNode({
  role,
  model,
  fallbacks = [],
  members,
  council,
}: AskingGraph['nodes'][number]): readonly (string | undefined)[] {
  if (role === 'council') return council === undefined ? [] : modelsAsked(council.graph);
  if (members !== undefined) {
    return members.flatMap((member) => [member.model ?? model, ...(member.fallbacks ?? fallbacks)]);
  }
  return role === 'rank' ? [] : [model, ...fallbacks];
}

/** All models that a graph and the councils in it name, with repetitions; undefined stands for the default model. */
export function modelsNamed({ nodes }: Graph): readonly (string | undefined)[] {
  return nodes.flatMap(({ members = [], council, ...node }) => [
    ...[node, ...members].flatMap(({ model, fallbacks = [] }) => [model, ...fallbacks]),
    ...(council === undefined ? [] : modelsNamed(council.graph)),
  ]);
}

/** The full name of a model (`provider/model`) that a node names; undefined stands for the default model. */
export type ModelNaming = (model: string | undefined) => string;

/**
 * The graph with the full names of its models. A node without a model gets the default one. A member without a model keeps
 * none, because it asks that of its node.
 */
export function withFullNames(graph: Graph, fullName: ModelNaming): Graph {
  const named = ({ model, fallbacks }: Pick<GraphNode, 'model' | 'fallbacks'>) => ({
    ...(model !== undefined && { model: fullName(model) }),
    ...(fallbacks !== undefined && { fallbacks: fallbacks.map(fullName) }),
  });
  const nodes = graph.nodes.map((node) => ({
    ...node,
    model: fullName(undefined),
    ...named(node),
    ...(node.members !== undefined && { members: node.members.map((member) => ({ ...member, ...named(member) })) }),
  }));
  return { ...graph, nodes };
}

/**
 * The full name of a model that the graph of a run names. The start of the run has decided which provider a name means and
 * has recorded it (contract 6.1), so the name of a provider is never read as part of a model's name of another provider,
 * even if that provider is no longer configured.
 *
 * Graphs of earlier versions hold names as a blueprint has them, or none. One that cannot be a full name is a model of the
 * default provider. One that looks like a full name counts as one: a text does not go to a provider that it may not be
 * meant for.
 *
 * @param fullName reads a name as a blueprint has it
 */
export function recordedName(model: string | undefined, fullName: ModelNaming): string {
  return model !== undefined && FULL_NAME.test(model) ? model : fullName(model);
}

/** `provider/model`: the names of providers are `[a-z][a-z0-9-]*`. */
const FULL_NAME = /^[a-z][a-z0-9-]*\/./u;

/** Why a run may not have a budget in US dollars: a sentence. @param model the full name of one without a price */
export function unpricedText(model: string): string {
  return `Model "${model}" has no price: add one to PRICES_FILE, or set a budget in tokens`;
}
