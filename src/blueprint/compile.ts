/** Compiles a saved council to a graph that runs can record. */
import type { NodeDefaults } from '../graph/limits.js';
import type {
  Blueprint,
  Graph,
  GraphNode,
  NodeRole,
  RunFailedData,
  SavedEdge,
  SavedNode,
} from '../generated/schemas.js';
import { ROLES, roleAmong } from '../council/roles.js';
import { elementAt } from '../system/element.js';
import { graphMembers } from './members.js';
import { entryOf, inspectGraph } from './validate.js';

export type Compiled =
  | { readonly isRunnable: true; readonly graph: Graph }
  /** `graph` is empty. A run of it starts and fails in the same append. */
  | { readonly isRunnable: false; readonly graph: Graph; readonly failure: RunFailedData };

/** The graph of a council. If the council has faults, the failure of its runs, with the node or edge of the first fault. */
export function compileBlueprint(
  blueprint: Pick<Blueprint, 'id' | 'nodes' | 'edges' | 'fallbacks' | 'approvals'>,
  defaults: NodeDefaults,
): Compiled {
  const { id, nodes, edges, fallbacks = [], approvals } = blueprint;
  const fault = inspectGraph(blueprint).find(({ isFault }) => isFault);
  if (fault !== undefined) {
    const error = `Cannot run blueprint "${id}": ${fault.message}`;
    const failure: RunFailedData = { kind: 'not_runnable', error, node: fault.node };
    return { isRunnable: false, graph: { entry: '', nodes: [], edges: [] }, failure };
  }
  const roleOf = roleAmong(edges);
  const graph = {
    entry: elementAt(nodes, entryOf(blueprint)).id,
    nodes: nodes.map((node) => graphNode(node, roleOf(node), { ...defaults, fallbacks })),
    edges: edges.map(graphEdge),
    ...(approvals !== undefined && { approvals }),
  };
  return { isRunnable: true, graph };
}

/** Values of fields that a node does not have. */
interface Defaults extends NodeDefaults {
  readonly fallbacks: string[];
}

/** Copies known fields only: clients may keep unknown fields in nodes. */
function graphNode(node: SavedNode, role: NodeRole, defaults: Defaults): GraphNode {
  const { id, label, systemPrompt, model, temperature, maxOutputTokens, tools, approvals } = node;
  const { fallbacks = defaults.fallbacks } = node;
  return {
    id,
    label,
    role,
    systemPrompt,
    ...(model === undefined ? {} : { model }),
    ...(temperature === undefined ? {} : { temperature }),
    ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
    tools: { webSearch: tools.webSearch, pdfReader: tools.pdfReader },
    countsIteration: ROLES[role].countsIteration,
    timeoutMs: node.timeoutMs ?? defaults.timeoutMs,
    maxAttempts: node.maxAttempts ?? defaults.maxAttempts,
    ...(fallbacks.length > 0 && { fallbacks }),
    ...(approvals !== undefined && { approvals }),
    ...graphMembers(node, role),
  };
}

function graphEdge({ id, source, target, type, condition }: SavedEdge): Graph['edges'][number] {
  return { id, source, target, condition: type === 'conditional' ? condition : null };
}
