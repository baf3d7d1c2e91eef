import { expect } from 'chai';
import { layoutGraph } from '../../../src/console/record/graph-layout.js';
import type { EdgeToPlace, NodeToPlace, PlacedNode, Places } from '../../../src/console/record/placement.js';
import { placesOf } from '../../../src/console/ui/graph-geometry.js';
import { seededRandom } from '../../support/seeded-random.js';

const node = (id: string): NodeToPlace => ({ id, width: 160, height: 60 });
const edge = (source: string, target: string, more: Partial<EdgeToPlace> = {}): EdgeToPlace => ({
  id: `${source}->${target}`,
  source,
  target,
  ...more,
});
const LOOP = [edge('write', 'judge'), edge('judge', 'write', { isBack: true }), edge('judge', 'polish')];
const COUNCIL = ['write', 'judge', 'polish'].map(node);

describe('The layout of a graph', () => {
  it('places nodes below their predecessors, without overlap', () => {
    const placed = layoutGraph(COUNCIL, LOOP);
    const tops = COUNCIL.map(({ id }) => placed.nodes.get(id)?.y ?? 0);
    expect(tops).to.deep.equal(tops.toSorted((a, b) => a - b));
    expectApart(placed);
  });

  it('routes edges from border to border', () => {
    for (const direction of ['down', 'right'] as const) {
      const { nodes, edges } = layoutGraph(COUNCIL, LOOP, direction);
      for (const { id, source, target } of LOOP) {
        const points = edges.get(id)?.points ?? [];
        expect(points.length, id).to.be.greaterThan(1);
        expect(isAt(points[0], nodes.get(source)), id).to.equal(true);
        expect(isAt(points.at(-1), nodes.get(target)), id).to.equal(true);
      }
    }
  });

  it('keeps the order of nodes in a row, and of edges between the same nodes', () => {
    const branches = ['scout', 'friend', 'sceptic', 'moderator'].map(node);
    const ways = [
      ...[edge('scout', 'friend'), edge('scout', 'sceptic'), edge('friend', 'moderator')],
      edge('sceptic', 'moderator'),
    ];
    for (const [direction, axis] of [
      ['down', 'x'],
      ['right', 'y'],
    ] as const) {
      const { nodes } = layoutGraph(branches, ways, direction);
      expect(nodes.get('friend')?.[axis]).to.be.lessThan(nodes.get('sceptic')?.[axis] ?? 0);
      const loop = layoutGraph(
        COUNCIL,
        LOOP.map((each) => ({ ...each, label: { width: 60, height: 20 } })),
        direction,
      );
      expect(loop.edges.get('write->judge')?.label?.[axis]).to.be.lessThan(
        loop.edges.get('judge->write')?.label?.[axis] ?? 0,
      );
    }
  });

  it('reserves space for labels', () => {
    const labelled = LOOP.map((each) => ({ ...each, label: { width: 60, height: 20 } }));
    const { edges, nodes } = layoutGraph(COUNCIL, labelled);
    for (const { id } of LOOP) {
      const label = edges.get(id)?.label;
      if (label === null || label === undefined) throw new Error(`no label at ${id}`);
      for (const each of nodes.values()) expect(isInside(label, each), id).to.equal(false);
    }
    expect(layoutGraph(COUNCIL, LOOP).edges.get('write->judge')?.label).to.equal(null);
  });

  it('routes long edges around nodes, without overlapping labels', () => {
    const ids = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9'];
    const ways = '0-3 1-3 2-4 3-5 4-5 5-6 5-7 6-8 7-8 5-8 8-9 0-9 0-8 1-9'.split(' ');
    for (const direction of ['down', 'right'] as const) {
      const edges = ways.map((way) => edge(way[0] ?? '', way[2] ?? '', { label: { width: 60, height: 22 } }));
      const sized = ids.map((id) => ({ ...node(id), position: null }));
      const placed = placesOf(sized, edges, { direction, layoutGraph });
      const nodes = [...placed.nodes.values()];
      for (const { id, points } of placed.edges.values()) {
        for (const [at, point] of points.slice(1, -1).entries()) {
          const next = points[at + 2] ?? point;
          for (let part = 0; part <= 1; part += 0.05) {
            const on = { x: point.x + (next.x - point.x) * part, y: point.y + (next.y - point.y) * part };
            const ends = nodes.filter((each) => id.split('->').includes(each.id));
            const others = nodes.filter((each) => !ends.includes(each));
            expect(others.find((each) => isInside(on, each))?.id, `${id} in ${direction}`).to.equal(undefined);
          }
        }
      }
      const labels = [...placed.edges.values()].map(({ id, label }) => {
        return { id, x: (label?.x ?? 0) - 30, y: (label?.y ?? 0) - 11, width: 60, height: 22 };
      });
      for (const one of labels) {
        for (const other of labels) if (one !== other) expect(overlap(one, other), one.id + other.id).to.equal(false);
      }
    }
  });

  it('accepts any id, self-loops, double edges and edges without a node', () => {
    const ids = ['__proto__', 'constructor', '', 'a b\u0001c', 'toString'];
    const edges = [
      ...ids.map((id, at) => edge(id, ids[at + 1] ?? id, { id: `e${at}` })),
      edge('__proto__', 'constructor', { id: 'twice' }),
      edge('', '', { id: 'self' }),
      edge('constructor', 'nowhere', { id: 'lost' }),
    ];
    const placed = layoutGraph(ids.map(node), edges);
    expect([...placed.nodes.keys()]).to.deep.equal(ids);
    expect([...placed.edges.keys()]).to.have.members(['e0', 'e1', 'e2', 'e3', 'e4', 'twice', 'self']);
    for (const { x, y } of placed.nodes.values()) expect([x, y].every(Number.isFinite)).to.equal(true);
  });

  it('places the largest blueprint in less than 5 s of processor time', () => {
    const random = seededRandom(7);
    const nodes = Array.from({ length: 200 }, (_, at) => node(`n${at}`));
    const pick = () => `n${Math.floor(random() * 200)}`;
    const any = Array.from({ length: 1_000 }, (_, at) => edge(pick(), pick(), { id: `e${at}` }));
    const chain = nodes.slice(1).map(({ id }, at) => edge(`n${at}`, id));
    for (const edges of [any, [...chain, ...any.slice(0, 100)], chain]) {
      const began = process.cpuUsage().user;
      const placed = layoutGraph(nodes, edges);
      // It takes 0.3 s. If dagre routed every edge, it would take more than 5 s.
      expect(process.cpuUsage().user - began).to.be.below(5_000_000);
      expectApart(placed);
      expect(placed.edges.size).to.be.within(150, 200);
    }
  });

  it('routes every edge of a long page of steps', () => {
    const nodes = Array.from({ length: 140 }, (_, at) => node(`s${at}`));
    const edges = nodes
      .slice(1)
      .flatMap(({ id }, at) => [edge(`s${at}`, id), ...(at % 4 === 3 ? [edge(`s${at - 2}`, id)] : [])]);
    const placed = layoutGraph(nodes, edges, 'right');
    expect(placed.edges.size).to.equal(edges.length);
    const along = [...placed.nodes.values()].map(({ x }) => x);
    expect(along).to.deep.equal(along.toSorted((one, other) => one - other));
  });
});

/** Checks that the first node is at the origin and that nodes do not overlap. */
function expectApart({ nodes }: Places): void {
  const all = [...nodes.values()];
  expect(all[0]).to.include({ x: 0, y: 0 });
  for (const one of all) {
    for (const other of all) if (one !== other) expect(overlap(one, other)).to.equal(false);
  }
}

function overlap(a: PlacedNode, b: PlacedNode): boolean {
  return a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
}

function isAt(point: { x: number; y: number } | undefined, placed: PlacedNode | undefined): boolean {
  return point !== undefined && placed !== undefined && isInside(point, grown(placed, 1));
}

function grown({ id, x, y, width, height }: PlacedNode, by: number): PlacedNode {
  return { id, x: x - by, y: y - by, width: width + 2 * by, height: height + 2 * by };
}

function isInside({ x, y }: { x: number; y: number }, box: PlacedNode): boolean {
  return x > box.x && x < box.x + box.width && y > box.y && y < box.y + box.height;
}
