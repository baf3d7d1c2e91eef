import { expect } from 'chai';
import type { Draft } from '../../../src/console/pages/blueprint/draft.js';
import {
  EMPTY,
  idFault,
  jsonOf,
  parseDraft,
  withEdge,
  withEdgeChanged,
  withNode,
  withNodeChanged,
  withNodeRenamed,
  withPositions,
  withoutEdge,
  withoutNode,
} from '../../../src/console/pages/blueprint/draft.js';
import { STARTER } from '../../../src/console/pages/blueprint/starter.js';
import type { History } from '../../../src/console/pages/blueprint/store.js';
import { edited, historyOf, redone, ended, undone } from '../../../src/console/pages/blueprint/store.js';
import { seededRandom } from '../../support/seeded-random.js';

/** A blueprint as a front end stores it, with unknown fields in every part. */
const KEPT: Draft = {
  name: 'Kept',
  nodes: [
    {
      id: 'a',
      color: 'red',
      data: { icon: '🦊', deep: [null, { x: 1 }] },
      tools: Object.assign({ webSearch: true }, { other: 3 }),
    },
    { id: 'b', position: Object.assign({ x: 4, y: 5 }, { z: 6 }) },
  ],
  edges: [{ source: 'a', target: 'b', animated: true, style: { stroke: '#f00' } }],
};

describe('A draft of a blueprint', () => {
  it('keeps unknown fields in every edit of other fields', () => {
    let draft = withNodeChanged(KEPT, 0, { label: 'A', temperature: 1 });
    draft = withNodeChanged(draft, 0, { temperature: undefined });
    draft = withEdgeChanged(draft, 0, { type: 'conditional', condition: 'approve' });
    draft = withNodeRenamed(draft, 0, 'first');
    draft = withPositions(draft, new Map([[1, { x: 10.4, y: 20 }]]));
    draft = withNode(draft, null);
    draft = withEdge(draft, { source: 'b', target: 'agent-3' });
    draft = parseDraft(jsonOf(draft));
    expect(draft.nodes[0]).to.deep.equal({ ...KEPT.nodes[0], id: 'first', label: 'A' });
    expect(draft.nodes[1]).to.deep.equal({ id: 'b', position: { x: 10, y: 20, z: 6 } });
    expect(draft.edges[0]).to.deep.equal({
      ...KEPT.edges[0],
      source: 'first',
      type: 'conditional',
      condition: 'approve',
    });
  });

  it('renames a node also in its edges and their ids', () => {
    const { edges } = withNodeRenamed(STARTER, 1, 'judge');
    expect(edges.map(({ id }) => id)).to.deep.equal(['writer->judge', 'judge->writer', 'judge->editor']);
    expect(edges[1]).to.include({ source: 'judge', target: 'writer', condition: 'rework' });
  });

  it('removes the edges of a deleted node, unless another node has its id', () => {
    expect(withoutNode(STARTER, 1).edges).to.deep.equal([]);
    const doubled = withNodeChanged(withNode(STARTER, null), 3, { id: 'critic' });
    expect(withoutNode(doubled, 3).edges).to.deep.equal(STARTER.edges);
  });

  it('gives a second edge between the same nodes a different id', () => {
    const twice = withEdge(STARTER, { source: 'writer', target: 'critic' });
    expect(twice.edges[3]).to.include({ id: 'writer->critic 2', type: 'linear' });
  });

  it('reports why a node cannot have an id', () => {
    expect(idFault(STARTER, 0, 'writer')).to.equal(null);
    for (const id of ['', 'done', 'critic']) expect(idFault(STARTER, 0, id), id).to.be.a('string');
  });

  it('reports where JSON is not a blueprint', () => {
    for (const [text, where] of [
      ['{', 'JSON'],
      ['[]', 'object'],
      ['{"nodes": []}', 'name'],
      ['{"name": "x", "nodes": {}}', 'nodes'],
      ['{"name": "x", "nodes": [{"id": "a"}, {"id": 7}]}', 'nodes[1]'],
      ['{"name": "x", "nodes": [], "edges": [{"source": "a"}]}', 'edges[0]'],
    ] as const) {
      expect(() => parseDraft(text), text).to.throw(where);
    }
  });
});

describe('Edits of a draft', () => {
  for (const seed of [1, 2, 3, 4, 5]) {
    it(`can all be undone and redone exactly (seed ${seed})`, () => {
      const start = seed % 2 === 0 ? EMPTY : KEPT;
      const steps = [historyOf(start)];
      const random = seededRandom(seed);
      for (let count = 0; count < 200; count += 1) steps.push(randomStep(last(steps), random));
      let history = last(steps);
      while (history.future.length > 0) history = redone(history);
      const end = history.present;
      const endText = JSON.stringify(end);
      while (history.past.length > 0) history = undone(history);
      expect(history.present).to.equal(start);
      expect(JSON.stringify(start)).to.equal(JSON.stringify(seed % 2 === 0 ? EMPTY : KEPT));
      while (history.future.length > 0) history = redone(history);
      expect(history.present).to.equal(end);
      expect(JSON.stringify(end)).to.equal(endText);
    });
  }

  it('of the same field are undone together, up to another edit', () => {
    let history = historyOf({ text: '' });
    for (const text of ['h', 'he', 'hey']) history = edited(history, { text }, 'text');
    history = edited(ended(history), { text: 'hey you' }, 'text');
    history = undone(history);
    expect(history.present.text).to.equal('hey');
    expect(undone(history).present.text).to.equal('');
    expect(undone(undone(history))).to.deep.equal(undone(history));
  });

  it('after an undo replace the undone edits', () => {
    const history = edited(undone(edited(historyOf({ at: 0 }), { at: 1 })), { at: 2 });
    expect(redone(history)).to.equal(history);
    expect(undone(history).present.at).to.equal(0);
  });
});

function last<T>(list: readonly T[]): T {
  const item = list.at(-1);
  if (item === undefined) throw new Error('The list is empty');
  return item;
}

/** A random edit, undo or redo. A later edit discards the undone edits. */
function randomStep(history: History<Draft>, random: () => number): History<Draft> {
  const draft = history.present;
  const [node, edge] = [Math.floor(random() * draft.nodes.length), Math.floor(random() * draft.edges.length)];
  const idOf = (at: number): string => draft.nodes[at]?.id ?? 'nobody';
  const steps: readonly (() => History<Draft>)[] = [
    () => edited(history, withNode(draft, random() < 0.5 ? null : { x: random() * 100, y: 0 })),
    () => edited(history, withNode(draft, null)),
    () => edited(history, withoutNode(draft, node)),
    () => edited(history, withNodeChanged(draft, node, { label: String(random()) }), `label ${node}`),
    () => edited(history, withNodeChanged(draft, node, { label: String(random()) }), `label ${node}`),
    () => edited(history, withNodeRenamed(draft, node, `id-${Math.floor(random() * 1e9)}`)),
    () => edited(history, withEdge(draft, { source: idOf(node), target: idOf(Math.floor(random() * 3)) })),
    () => edited(history, withEdgeChanged(draft, edge, { condition: `score < ${random()}`, type: 'conditional' })),
    () => edited(history, withoutEdge(draft, edge)),
    () => edited(history, withPositions(draft, new Map([[node, { x: random(), y: random() }]]))),
    () => ended(history),
    () => undone(history),
    () => redone(history),
  ];
  return (steps[Math.floor(random() * steps.length)] ?? (() => history))();
}
