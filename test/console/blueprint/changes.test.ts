import { expect } from 'chai';
import { changesBetween } from '../../../src/console/pages/blueprint/changes.js';
import type { Draft } from '../../../src/console/pages/blueprint/draft.js';
import { withEdgeChanged, withNode, withNodeChanged, withoutNode } from '../../../src/console/pages/blueprint/draft.js';
import { STARTER } from '../../../src/console/pages/blueprint/starter.js';

describe('Changes between two versions of a blueprint', () => {
  const told = (before: Draft, after: Draft): readonly string[] =>
    changesBetween(before, after).map(
      ({ kind, name, how, fields }) => `${kind} ${name} ${how}: ${fields.map(({ field }) => field).join(' ')}`,
    );

  it('are empty if only the order of fields differs', () => {
    const turned = {
      ...STARTER,
      nodes: STARTER.nodes.map((node) => ({ ...Object.fromEntries(Object.entries(node).reverse()), id: node.id })),
    };
    expect(told(STARTER, turned)).to.deep.equal([]);
  });

  it('name added, removed and changed parts and their fields', () => {
    const after = withEdgeChanged(
      withNodeChanged({ ...withoutNode(withNode(STARTER, null), 2), name: 'Other' }, 0, { systemPrompt: 'Think.' }),
      1,
      { condition: 'score < 5' },
    );
    expect(told(STARTER, after)).to.deep.equal([
      'blueprint Other changed: name entry',
      'node writer changed: systemPrompt',
      'node agent-4 added: id label systemPrompt',
      'node editor removed: id label type systemPrompt'.replace(' type', ''),
      'edge critic->writer changed: condition',
      'edge critic->editor removed: id source target type condition',
    ]);
  });

  it('include another order of nodes or edges, because the order decides precedence', () => {
    expect(told(STARTER, { ...STARTER, nodes: STARTER.nodes.toReversed() })).to.deep.equal([
      'blueprint Writer and critic changed: order of nodes',
    ]);
  });
});
