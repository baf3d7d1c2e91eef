import { expect } from 'chai';
import { compileBlueprint } from '../../../src/blueprint/compile.js';
import { modelIssues } from '../../../src/blueprint/models.js';
import { councilOf } from '../../../src/blueprint/record.js';
import type { BlueprintNode } from '../../../src/generated/schemas.js';
import { unpricedModel } from '../../../src/run/budget/spending.js';

const DEFAULTS = { timeoutMs: 1_000, maxAttempts: 4 };
const PRICE = { input: 1, output: 1, cacheRead: null, cacheWrite: null };

/** The model without a price that a run of a council may ask, as its warning says; those that begin with `x` have none. */
function unpriced(
  nodes: readonly Omit<BlueprintNode, 'id'>[],
  { fallbacks = [] as string[], byDefault = 'x-default' } = {},
) {
  const named = nodes.map((node, at) => ({ ...node, id: `n${at}` }));
  const edges = named.slice(1).map(({ id }, at) => ({ source: `n${at}`, target: id }));
  const council = councilOf({ name: 'x', nodes: named, edges, fallbacks, budget: { usd: 1 } });
  const { graph } = compileBlueprint({ id: 'bp', ...council }, DEFAULTS);
  const [fullName, priceOf] = [(model = byDefault) => model, (name: string) => (name.startsWith('x') ? null : PRICE)];
  const found = unpricedModel(graph, { fullName, priceOf });
  const nameless = (model?: string): string | null => (priceOf(fullName(model)) === null ? fullName(model) : null);
  const warnings = modelIssues(council, { builtIn: [], providers: [], unpriced: nameless });
  expect(warnings.map(({ path }) => path)).to.deep.equal(found === null ? [] : ['budget.usd']);
  return found;
}

describe('A budget in US dollars needs the price', () => {
  it('of each model of a member, and of the fallbacks that it has or takes from its node', () => {
    expect(unpriced([{ type: 'panel', members: ['a', 'x1'] }])).to.equal('x1');
    expect(unpriced([{ type: 'critic', members: [{ model: 'a', fallbacks: ['b', 'x2'] }] }])).to.equal('x2');
    expect(unpriced([{ type: 'panel', fallbacks: ['x3'], members: ['a', 'b'] }])).to.equal('x3');
    expect(unpriced([{ type: 'panel', members: ['a', 'b'] }], { fallbacks: ['x4'] })).to.equal('x4');
    expect(unpriced([{ type: 'panel', model: 'x5', members: ['a', {}] }])).to.equal('x5');
    expect(unpriced([{ type: 'panel', members: ['a', {}] }])).to.equal('x-default');
    expect(
      unpriced([
        { type: 'panel', members: ['a', 'b'] },
        { type: 'rank', members: ['x6'] },
      ]),
    ).to.equal('x6');
  });

  it('not of the model of a node whose members all have their own', () => {
    const own = { fallbacks: [], model: 'a' };
    expect(unpriced([{ type: 'panel', model: 'x1', fallbacks: ['x2'], members: [own, own] }])).to.equal(null);
    expect(unpriced([{ type: 'panel', members: ['a', 'b'] }, { type: 'rank' }])).to.equal(null);
    expect(unpriced([{ type: 'agent', model: 'a', members: ['x1', 'b'] }])).to.equal(null);
    expect(unpriced([{ type: 'critic', model: 'x3', members: [] }])).to.equal('x3');
    expect(unpriced([{ type: 'panel', members: ['a', 'b'] }, { type: 'judge' }])).to.equal('x-default');
  });
});
