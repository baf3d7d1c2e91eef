/** The node that turns the draft of a run into its final output. */
import type { Graph, GraphNode } from '../generated/schemas.js';

type Schema = NonNullable<GraphNode['schema']>;

/**
 * A graph with a node after its last ones that gives the final output by a JSON Schema, or with the schema in place of that of
 * its output node. The new node has the model and the limits of the node before it; its id is `output`, or `output-2` and so on if that is
 * taken.
 */
export function withOutput(graph: Graph, schema: Schema | undefined): Graph {
  if (schema === undefined) return graph;
  if (graph.nodes.some(isOutput)) {
    return { ...graph, nodes: graph.nodes.map((node) => (isOutput(node) ? { ...node, schema } : node)) };
  }
  const sources = new Set(graph.edges.map(({ source }) => source));
  const last = graph.nodes.filter(({ id }) => !sources.has(id));
  const [before] = last;
  // A graph of a blueprint with faults has no nodes.
  if (before === undefined) return graph;
  const { model, fallbacks, timeoutMs, maxAttempts } = before;
  const id = freeId(
    'output',
    graph.nodes.map((node) => node.id),
  );
  const node: GraphNode = {
    id,
    label: 'Output',
    role: 'format',
    systemPrompt: '',
    schema,
    isOutput: true,
    ...(model !== undefined && { model }),
    ...(fallbacks !== undefined && { fallbacks }),
    tools: { webSearch: false, pdfReader: false },
    countsIteration: false,
    timeoutMs,
    maxAttempts,
  };
  const taken = graph.edges.map((edge) => edge.id);
  const edges = last.map(({ id: source }) => {
    const edge = { id: freeId(`${source}->${id}`, taken), source, target: id, condition: null };
    taken.push(edge.id);
    return edge;
  });
  return { ...graph, nodes: [...graph.nodes, node], edges: [...graph.edges, ...edges] };
}

/** Whether a node gives the final output. */
export function isOutput({ isOutput: is }: Pick<GraphNode, 'isOutput'>): boolean {
  return is === true;
}

function freeId(wanted: string, taken: readonly string[]): string {
  if (!taken.includes(wanted)) return wanted;
  let number = 2;
  while (taken.includes(`${wanted}-${number}`)) number += 1;
  return `${wanted}-${number}`;
}
