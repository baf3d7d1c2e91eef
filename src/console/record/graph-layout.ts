/** Places of nodes and ways of edges, for graphs as they are, as they ran, and as they are drawn in the editor. */
import { Graph, layout } from '@dagrejs/dagre';
import { layeredLayout } from './layered-layout.js';
import type { EdgeToPlace, GraphLayout, LayoutOptions, NodeToPlace, PlacedNode, Point } from './placement.js';

/**
 * Sizes up to which the careful layout is sought: some 0.3 s there on a slow machine, growing faster than the graph.
 * Beyond, nodes stand in plain ranks.
 */
const [MOST_NODES, MOST_EDGES] = [200, 300];

/** The same nodes and edges in the same order always come to the same places. */
export function layoutGraph(
  nodes: readonly NodeToPlace[],
  edges: readonly EdgeToPlace[],
  { direction = 'down', gap = 40, rankGap = 56 }: LayoutOptions = {},
): GraphLayout {
  const ids = new Set(nodes.map(({ id }) => id));
  const drawn = edges.filter(({ source, target }) => ids.has(source) && ids.has(target));
  if (nodes.length === 0) return { width: 0, height: 0, nodes: new Map(), edges: new Map() };
  const settings = { direction, gap, rankGap };
  const isLarge = nodes.length > MOST_NODES || drawn.length > MOST_EDGES;
  return isLarge ? layeredLayout(nodes, drawn, settings) : carefulLayout(nodes, drawn, settings);
}

function carefulLayout(
  nodes: readonly NodeToPlace[],
  edges: readonly EdgeToPlace[],
  { direction, gap, rankGap }: Required<LayoutOptions>,
): GraphLayout {
  const graph = new Graph({ multigraph: true });
  const rankdir = direction === 'down' ? 'TB' : 'LR';
  graph.setGraph({ rankdir, nodesep: gap, edgesep: gap / 2, ranksep: rankGap, marginx: 8, marginy: 8 });
  // Names of our own: an id may be one that objects have already.
  const names = new Map(nodes.map(({ id }, index) => [id, `n${index}`]));
  const nameOf = (id: string): string => names.get(id) ?? '';
  for (const { id, width, height } of nodes) graph.setNode(nameOf(id), { width, height });
  edges.forEach(({ source, target, label, isBack }, index) => {
    const [from, to] = isBack === true ? [target, source] : [source, target];
    const { width, height } = label ?? { width: 0, height: 0 };
    graph.setEdge(nameOf(from), nameOf(to), { width, height, labelpos: 'c' }, `e${index}`);
  });
  layout(graph);
  const { width, height } = graph.graph();
  return {
    ...{ width, height },
    nodes: new Map(nodes.map((node) => [node.id, cornered(node, graph.node(nameOf(node.id)))])),
    edges: new Map(
      edges.map((edge, index) => {
        const { id, source, target, isBack = false } = edge;
        const [from, to] = isBack ? [target, source] : [source, target];
        const { points, x, y } = graph.edge(nameOf(from), nameOf(to), `e${index}`);
        const way = points.map((point) => ({ x: point.x, y: point.y }));
        const label = edge.label === undefined || x === undefined || y === undefined ? null : { x, y };
        return [id, { id, points: isBack ? way.toReversed() : way, label }];
      }),
    ),
  };
}

function cornered({ id, width, height }: NodeToPlace, { x, y }: Point): PlacedNode {
  return { id, width, height, x: x - width / 2, y: y - height / 2 };
}
