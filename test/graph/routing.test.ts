import { expect } from 'chai';
import { MAX_DRAFT_BYTES } from '../../src/graph/limits.js';
import { planOf } from '../../src/graph/plan.js';
import { noRoute, routeAfter } from '../../src/graph/routing.js';
import type { Graph } from '../../src/generated/schemas.js';
import { EMPTY_BRANCH } from '../../src/run/frontier/branch.js';
import { conditionFacts } from '../../src/run/frontier/output.js';
import { graphWith } from '../support/given.js';

const edgesTo = (conditions: readonly (string | null)[]): Graph['edges'] =>
  conditions.map((condition, at) => ({ id: `e${at}`, source: 'a', target: at % 2 === 0 ? 'b' : 'c', condition }));

describe('The route after a node', () => {
  it('counts the length of a draft once for all conditions that read it', () => {
    const never = Array.from({ length: 10 }, () => 'draft_length<0').join('||');
    const conditions = [...Array.from({ length: 999 }, () => never), 'draft_length > 9'];
    const plan = planOf(graphWith([{ id: 'a' }, { id: 'b' }, { id: 'c' }], edgesTo(conditions)));
    const draft = 'é'.repeat((MAX_DRAFT_BYTES - 2) / 2);
    const route = routeAfter(plan, 'a', conditionFacts({ ...EMPTY_BRANCH, draft }, 1));
    expect(route).to.deep.equal({ next: ['c'], reason: 'condition draft_length > 9' });
  });

  it('that does not exist is explained by the route, the score and the other values that the conditions compare', () => {
    const nodes = [{ id: 'a' }, { id: 'b' }, { id: 'c' }];
    const facts = { ...conditionFacts({ ...EMPTY_BRANCH, score: 6.5, verdict: 'rework' }, 2), agreement: 1 / 3 };
    const explained = (...conditions: readonly string[]): string =>
      noRoute(planOf(graphWith(nodes, edgesTo(conditions))), 'a', facts);
    expect(explained('approve')).to.equal('No outgoing edge of node "a" holds: route rework, score 6.5');
    expect(explained('agreement > 0.5 && score > 7', 'spread > 2', 'iteration == 3 || agreement > 0.9')).to.equal(
      'No outgoing edge of node "a" holds: route rework, score 6.5, agreement 0.333, spread null, iteration 2',
    );
  });
});
