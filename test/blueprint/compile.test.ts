import { expect } from 'chai';
import { compileBlueprint } from '../../src/blueprint/compile.js';
import { inspectGraph } from '../../src/blueprint/validate.js';
import { councilOf } from '../../src/blueprint/record.js';
import type { BlueprintCreate, Graph } from '../../src/generated/schemas.js';

const DEFAULTS = { timeoutMs: 1_000, maxAttempts: 4 };

type Draft = Pick<BlueprintCreate, 'nodes' | 'edges'>;

const compile = (draft: Draft) => compileBlueprint({ id: 'bp', ...councilOf({ name: 'x', ...draft }) }, DEFAULTS);

function graphOf(draft: Draft): Graph {
  const compiled = compile(draft);
  if (!compiled.isRunnable) throw new Error(compiled.failure.error);
  return compiled.graph;
}

/** Edges from lines such as `a->b` (linear) and `a->b: score > 8` (conditional). */
function edges(...lines: readonly string[]): NonNullable<BlueprintCreate['edges']> {
  return lines.map((line) => {
    const [, source = '', target = '', condition] = /^(\w+)->(\w+)(?:: (.*))?$/.exec(line) ?? [];
    return { source, target, ...(condition === undefined ? {} : { type: 'conditional' as const, condition }) };
  });
}

const nodes = (...ids: readonly string[]): BlueprintCreate['nodes'] => ids.map((id) => ({ id }));
const findings = (draft: Draft) => inspectGraph(councilOf({ name: 'x', ...draft }));

describe('A compiled blueprint', () => {
  it('starts at the first node without incoming edges, otherwise at the first node', () => {
    expect(graphOf({ nodes: nodes('b', 'a'), edges: edges('a->b') }).entry).to.equal('a');
    expect(graphOf({ nodes: nodes('c', 'a', 'b'), edges: edges('a->c', 'b->c') }).entry).to.equal('a');
    const all = edges('a->b', 'b->a: score > 1', 'b->c', 'c->a: score > 1', 'c->d: score > 2', 'b->d');
    expect(graphOf({ nodes: nodes('a', 'b', 'c', 'd'), edges: all }).entry).to.equal('a');
  });

  for (const [label, isCritic] of [
    ['Critic', true],
    ['critic_agent', true],
    ['evaluator-2', true],
    ['Kritiker', true],
    ['Bewerter', true],
    ['Pru\u0308fer', true],
    ['Reviewer(s)', true],
    ['The critic’s chair', true],
    ['Kritikerinnen', true],
    ['Textkritiker', true],
    ['Faktenpru\u0308ferin', true],
    ['Pruefer', true],
    ['\uff23\uff52\uff49\uff54\uff49\uff43', true],
    // A word for criticism counts only alone, because beside other words it may name the subject of an agent.
    ['Criticism', true],
    ['Critique', true],
    ['Textkritik', true],
    ['Address criticism', false],
    ['Kritik einarbeiten', false],
    ['Critical thinker', false],
    ['Prejudged', false],
    ['Preview writer', false],
    ['Interviewer', false],
    ['Kritisch', false],
    ['Prüfung vorbereiten', false],
    ['Writer', false],
    ['', false],
  ] as const) {
    it(`gives a node labelled "${label}" the role of ${isCritic ? 'a critic' : 'an agent'}`, () => {
      const [node] = graphOf({ nodes: [{ id: 'a', label, systemPrompt: 'You are a critic' }] }).nodes;
      expect(node).to.include({ role: isCritic ? 'critic' : 'agent', countsIteration: !isCritic });
    });
  }

  it('makes a node with a bare verdict on an outgoing edge a critic, unless its type says otherwise', () => {
    const rolesOf = (draft: Draft): readonly string[] => graphOf(draft).nodes.map(({ role }) => role);
    expect(rolesOf({ nodes: nodes('a', 'b'), edges: edges('a->b: approve') })).to.deep.equal(['critic', 'agent']);
    expect(rolesOf({ nodes: nodes('a', 'b'), edges: edges('a->b: route == "approve"') })[0]).to.equal('agent');
    const typed: Draft = { nodes: [{ id: 'a', type: 'agent' }, { id: 'b' }], edges: edges('a->b: approve') };
    expect(rolesOf(typed)[0]).to.equal('agent');
    expect(
      rolesOf({
        nodes: [
          { id: 'Critic', type: 'agent' },
          { id: 'x', type: 'critic' },
        ],
      }),
    ).to.deep.equal(['agent', 'critic']);
  });

  it('ignores a verdict on a linear edge', () => {
    for (const type of [{}, { type: 'linear' as const }]) {
      const draft: Draft = {
        nodes: nodes('a', 'b'),
        edges: [{ source: 'a', target: 'b', condition: 'rework', ...type }],
      };
      expect(graphOf(draft).nodes.map(({ role }) => role)).to.deep.equal(['agent', 'agent']);
      expect(findings(draft)[0]).to.include({ path: 'edges[0].condition', isFault: false });
    }
  });

  it('records the settings of nodes with defaults, and no unknown fields', () => {
    const settings = { model: 'm', temperature: 0.5, maxOutputTokens: 9, timeoutMs: 7, maxAttempts: 2 };
    const [own, plain] = graphOf({ nodes: [{ id: 'a', ...settings, colour: 'red' }, { id: 'b' }] }).nodes;
    expect(own).to.deep.include(settings);
    expect(own).not.to.have.property('colour');
    expect(plain).to.include(DEFAULTS);
    expect(plain).not.to.have.any.keys('model', 'temperature', 'maxOutputTokens');
  });

  it('uses conditions of conditional edges only; an edge without a type is linear', () => {
    const linear = { source: 'a', target: 'b', type: 'linear' as const, condition: 'approve' };
    const untyped = { source: 'a', target: 'b', condition: 'score > 1' };
    const conditional = { ...untyped, type: 'conditional' as const };
    const frozen = graphOf({ nodes: nodes('a', 'b'), edges: [linear, untyped, conditional] }).edges;
    expect(frozen.map(({ condition }) => condition)).to.deep.equal([null, null, 'score > 1']);
  });
});

describe('A blueprint with faults', () => {
  for (const [what, draft, path, names] of [
    ['no nodes', { nodes: [] }, 'nodes', 'no nodes'],
    ['an edge to nowhere', { nodes: nodes('a'), edges: edges('a->gone') }, 'edges[0].target', '"gone"'],
    ['an edge from nowhere', { nodes: nodes('a'), edges: edges('gone->a') }, 'edges[0].source', '"gone"'],
    [
      'a condition that does not parse',
      { nodes: nodes('a', 'b'), edges: edges('a->b: score >') },
      'edges[0].condition',
      '"a->b"',
    ],
    [
      'a conditional edge without condition',
      { nodes: nodes('a', 'b'), edges: [{ source: 'a', target: 'b', type: 'conditional' }] },
      'edges[0].condition',
      '"a->b"',
    ],
    [
      'a cycle that nothing can leave',
      { nodes: nodes('a', 'b', 'c'), edges: edges('a->b', 'b->c', 'c->b') },
      'nodes[1]',
      '"b", "c"',
    ],
  ] as const satisfies readonly (readonly [string, Draft, string, string])[]) {
    it(`cannot run: ${what}`, () => {
      expect(findings(draft)[0]).to.include({ path, isFault: true });
      const compiled = compile(draft);
      if (compiled.isRunnable) throw new Error('It can run');
      expect(compiled.failure).to.include({ kind: 'not_runnable' });
      expect(compiled.failure.error).to.include('"bp"').and.to.include(names);
    });
  }

  for (const [what, draft, path] of [
    ['a second entry', { nodes: nodes('a', 'b', 'c'), edges: edges('a->c', 'b->c') }, 'nodes[1]'],
    [
      'nodes out of reach',
      { nodes: nodes('a', 'b', 'c'), edges: edges('b->c', 'c->b', 'c->a: score > 1') },
      'nodes[1]',
    ],
    ['a linear cycle', { nodes: nodes('a', 'b', 'c'), edges: edges('a->b', 'b->a', 'b->c') }, 'nodes[0]'],
    [
      'a cycle entered at two nodes, which leads back by the order of the nodes alone',
      { nodes: nodes('s', 'a', 'b', 'c'), edges: edges('s->a', 's->b', 'a->b', 'b->a: score < 8', 'b->c: score > 7') },
      'edges[3]',
    ],
    ['a route no critic gives', { nodes: nodes('a', 'b'), edges: edges('a->b: publish') }, 'edges[0].condition'],
    [
      'a condition on a linear edge',
      { nodes: nodes('a', 'b'), edges: [{ source: 'a', target: 'b', type: 'linear', condition: 'x y' }] },
      'edges[0].condition',
    ],
  ] as const satisfies readonly (readonly [string, Draft, string])[]) {
    it(`runs with a warning: ${what}`, () => {
      expect(findings(draft)[0]).to.include({ path, isFault: false });
      expect(compile(draft).isRunnable).to.equal(true);
    });
  }

  it('gives no warning for a rework loop with several entries or another loop with one entry', () => {
    const reworked = edges('s->a', 's->b', 'a->c', 'b->c', 'c->a: rework', 'c->f: approve');
    expect(findings({ nodes: nodes('s', 'b', 'c', 'a', 'f'), edges: reworked })).to.deep.equal([]);
    const looped = edges('s->a', 'a->b', 'a->c', 'b->d', 'c->d', 'd->a: score < 8', 'd->f: score > 7');
    expect(findings({ nodes: nodes('s', 'a', 'b', 'c', 'd', 'f'), edges: looped })).to.deep.equal([]);
  });

  const ids = Array.from({ length: 200 }, (_, index) => `n${index}`);
  const condition = Array.from({ length: 10 }, (_, at) => `draft_length > ${at}`).join('||');
  for (const [what, lines] of [
    ['edges criss-cross', Array.from({ length: 1_000 }, (_, at) => `n${at % 200}->n${(at * 7 + 1) % 200}`)],
    ['conditions', Array.from({ length: 1_000 }, (_, at) => `n${at % 200}->n${(at * 7 + 1) % 200}: ${condition}`)],
    ['cycles, one in another', Array.from({ length: 1_000 }, (_, at) => `n${at % 200}->n${Math.floor(at / 200)}`)],
    ['one cycle', ids.map((id, at) => `${id}->n${(at + 1) % 200}`)],
    ['edges to nowhere', Array.from({ length: 1_000 }, (_, at) => `gone${at}->${'x'.repeat(200)}`)],
  ] as const) {
    it(`is validated and compiled within the test's timeout, with the most ${what}`, () => {
      const draft = { nodes: nodes(...ids), edges: edges(...lines) };
      expect(compile(draft).isRunnable).to.equal(!findings(draft).some(({ isFault }) => isFault));
    });
  }
});
