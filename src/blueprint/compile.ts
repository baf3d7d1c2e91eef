/** Compiles a saved council to a graph that runs can record. */
import type { NodeDefaults } from '../graph/limits.js';
import { MAX_PARALLEL } from '../graph/limits.js';
import type {
  Blueprint,
  FrozenCouncil,
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

/** What a compilation reads of a council. */
export type Compilable = Pick<Blueprint, 'id' | 'nodes' | 'edges' | 'fallbacks' | 'approvals'>;

/**
 * The graph of a council. If the council has faults, the failure of its runs, with the node or edge of the first fault.
 *
 * @param councils the councils that its nodes run, by node; without them the graph can be drawn, but not run
 */
export function compileBlueprint(
  blueprint: Compilable,
  defaults: NodeDefaults,
  councils: ReadonlyMap<string, FrozenCouncil> = new Map(),
): Compiled {
  const { nodes, edges, fallbacks = [], approvals } = blueprint;
  const fault = inspectGraph(blueprint).find(({ isFault }) => isFault);
  if (fault !== undefined) return notRunnable(blueprint, fault);
  const roleOf = roleAmong(edges);
  const graph = {
    entry: elementAt(nodes, entryOf(blueprint)).id,
    nodes: nodes.map((node) => {
      const council = councils.get(node.id);
      return {
        ...graphNode(node, roleOf(node), { ...defaults, fallbacks }),
        ...(council !== undefined && { council }),
      };
    }),
    edges: edges.map(graphEdge),
    ...(approvals !== undefined && { approvals }),
  };
  return { isRunnable: true, graph };
}

/** The failure of the runs of a council with a fault. */
export function notRunnable(
  { id }: Pick<Blueprint, 'id'>,
  { node, message }: { readonly node: string | null; readonly message: string },
): Extract<Compiled, { isRunnable: false }> {
  const failure: RunFailedData = { kind: 'not_runnable', error: `Cannot run blueprint "${id}": ${message}`, node };
  return { isRunnable: false, graph: { entry: '', nodes: [], edges: [] }, failure };
}

/** Values of fields that a node does not have. */
interface Defaults extends NodeDefaults {
  readonly fallbacks: string[];
}

/** Copies known fields only: clients may keep unknown fields in nodes. */
function graphNode(node: SavedNode, role: NodeRole, defaults: Defaults): GraphNode {
  const { id, label, systemPrompt, tools, material, approvals } = node;
  const { fallbacks = defaults.fallbacks } = node;
  return {
    id,
    label,
    role,
    systemPrompt,
    ...callFields(node),
    tools: { webSearch: tools.webSearch, pdfReader: tools.pdfReader },
    ...(material === false && { material }),
    countsIteration: ROLES[role].countsIteration,
    timeoutMs: node.timeoutMs ?? defaults.timeoutMs,
    maxAttempts: node.maxAttempts ?? defaults.maxAttempts,
    ...(fallbacks.length > 0 && { fallbacks }),
    ...(approvals !== undefined && { approvals }),
    ...graphMembers(node, role),
    ...roleFields(node, role),
  };
}

function callFields({ model, temperature, maxOutputTokens }: SavedNode) {
  return {
    ...(model !== undefined && { model }),
    ...(temperature !== undefined && { temperature }),
    ...(maxOutputTokens !== undefined && { maxOutputTokens }),
  };
}

/** The fields of a format or a council. */
function roleFields(node: SavedNode, role: NodeRole) {
  if (role === 'council') return councilFields(node);
  return role === 'format' && node.schema !== undefined ? { schema: node.schema } : {};
}

function councilFields({ topic, for_each: forEach, max_parallel: maxParallel, on_error: onError = 'fail' }: SavedNode) {
  return {
    ...(topic !== undefined && { topic }),
    ...(forEach !== undefined && { forEach, maxParallel: maxParallel ?? MAX_PARALLEL }),
    onError,
  };
}

function graphEdge({ id, source, target, type, condition }: SavedEdge): Graph['edges'][number] {
  return { id, source, target, condition: type === 'conditional' ? condition : null };
}
