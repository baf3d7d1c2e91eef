import { expect } from 'chai';
import { edgeDirections, ambiguousBackEdges } from '../../src/graph/plan.js';
import { reachableFrom, edgesBySource } from '../../src/graph/traversal.js';
import type { Graph } from '../../src/generated/schemas.js';
import { graphOf } from '../support/given.js';
import { drawsOf, named, randomGraph } from '../support/random-history.js';

const GRAPHS = 400;

const backIn = (graph: Graph): readonly string[] =>
  edgeDirections(graph)
    .back.map(({ id }) => id)
    .sort();

/** The same graph and entry with the nodes in another order. */
function reordered(graph: Graph, seed: number): Graph {
  const { below } = drawsOf(seed);
  const left = [...graph.nodes];
  const nodes = [];
  while (left.length > 0) nodes.push(...left.splice(below(left.length), 1));
  return { ...graph, nodes };
}

const everyGraph = (check: (graph: Graph, seed: number) => void): void => {
  for (let seed = 1; seed <= GRAPHS; seed += 1) named(seed, () => check(randomGraph(drawsOf(seed)), seed));
};

describe('The forward edges of a graph', () => {
  it('have no cycle, and reach the same nodes as all edges', () => {
    everyGraph((graph) => {
      const onward = edgesBySource(edgeDirections(graph).forward);
      for (const { id } of graph.nodes) expect(reachableFrom(id, onward).has(id)).to.equal(false);
      const reached = reachableFrom(graph.entry, edgesBySource(graph.edges));
      reached.delete(graph.entry);
      expect(reachableFrom(graph.entry, onward)).to.deep.equal(reached);
    });
  });

  it('are the same in every order of the nodes, unless an edge is ambiguous', () => {
    let inDoubt = 0;
    everyGraph((graph, seed) => {
      if (ambiguousBackEdges(graph).length > 0) inDoubt += 1;
      else expect(backIn(reordered(graph, seed))).to.deep.equal(backIn(graph));
    });
    expect(inDoubt).to.be.within(1, GRAPHS / 4);
  });

  it('enter a loop at each of its entries, and exclude its rework edge', () => {
    const edges = 'a -> c; b -> c; c? -rework-> a; c? -approve-> end';
    for (const start of ['s -> a, b', 's -> b, a'])
      expect(backIn(graphOf(`${start}; ${edges}`))).to.deep.equal(['c->a']);
  });

  it("include a rework edge to a new node, and exclude that node's edge back", () => {
    const graph = graphOf('draft -> judge?; judge? -rework-> notes; notes -> judge; judge? -approve-> end');
    expect(backIn(graph)).to.deep.equal(['notes->judge']);
    expect(ambiguousBackEdges(graph)).to.deep.equal([]);
  });

  it('are ambiguous between two nodes that lead to each other and both have other incoming edges', () => {
    const graph = graphOf('s -> p, q; p -> q; q -> p');
    expect(backIn(graph)).to.deep.equal(['q->p']);
    expect(ambiguousBackEdges(graph).map(({ id }) => id)).to.deep.equal(['q->p']);
  });

  it('are ambiguous in a loop that only rework edges enter', () => {
    const graph = graphOf('a? -rework-> loop; a? -approve-> b; loop -> judge?; b -> judge?; judge? -rework-> loop');
    expect(ambiguousBackEdges(graph).map(({ id }) => id)).to.deep.equal(['judge->loop']);
    const other = { ...graph, nodes: [...graph.nodes].reverse() };
    expect(backIn(other)).not.to.deep.equal(backIn(graph));
  });
});
