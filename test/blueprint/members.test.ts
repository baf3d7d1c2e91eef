import { expect } from 'chai';
import { compileBlueprint } from '../../src/blueprint/compile.js';
import { memberIssues } from '../../src/blueprint/members.js';
import { misspeltFields } from '../../src/blueprint/misspelt-fields.js';
import { modelIssues } from '../../src/blueprint/models.js';
import { councilOf } from '../../src/blueprint/record.js';
import type { BlueprintCreate, BlueprintNode, GraphNode } from '../../src/generated/schemas.js';

const DEFAULTS = { timeoutMs: 1_000, maxAttempts: 4 };

const council = (nodes: readonly BlueprintNode[], edges: BlueprintCreate['edges'] = []) =>
  councilOf({ name: 'x', nodes: [...nodes], edges });

function graphNode(node: Omit<BlueprintNode, 'id'>, fallbacks: string[] = []): GraphNode | undefined {
  const compiled = compileBlueprint({ id: 'bp', ...council([{ id: 'a', ...node }]), fallbacks }, DEFAULTS);
  return compiled.graph.nodes[0];
}

/** A linear edge for each pair of neighbours. */
const chain = (...ids: readonly string[]): NonNullable<BlueprintCreate['edges']> =>
  ids.slice(1).map((target, at) => ({ source: String(ids[at]), target }));

const PANEL: BlueprintNode = { id: 'p', type: 'panel', members: ['one', 'two'] };

describe('The members of a node', () => {
  it('get ids by their position and labels from their ids, and keep unknown fields', () => {
    const members = ['gpt', { label: 'Second' }, { id: 'own\n3', colour: 'red' }, {}];
    expect(council([{ id: 'p', type: 'panel', members }]).nodes[0]?.members).to.deep.equal([
      { id: 'm1', label: 'm1', model: 'gpt' },
      { id: 'm2', label: 'Second' },
      { id: 'own\n3', label: 'own 3', colour: 'red' },
      { id: 'm4', label: 'm4' },
    ]);
  });

  it('are recorded in a run with their own fields only, not with those of their node', () => {
    const own = { model: 'm', systemPrompt: 'Be brief.', temperature: 0, maxOutputTokens: 9, fallbacks: [] };
    const members = [{ id: 'x', label: 'X', ...own, colour: 'red' }, 'gpt'];
    const panel = graphNode({ type: 'panel', systemPrompt: 'Ours', temperature: 1, members }, ['spare']);
    expect(panel?.members).to.deep.equal([
      { id: 'x', label: 'X', ...own },
      { id: 'm2', label: 'm2', model: 'gpt' },
    ]);
    expect(panel).to.deep.include({ role: 'panel', systemPrompt: 'Ours', temperature: 1, fallbacks: ['spare'] });
  });

  it('of a panel or jury have a grace period in a run, and a quorum only if the node says so', () => {
    const members = ['one', 'two', 'three'];
    expect(graphNode({ type: 'panel', members })).to.include({ graceMs: 30_000, countsIteration: true });
    expect(graphNode({ type: 'panel', members })).not.to.have.any.keys('quorum', 'keep', 'aggregate');
    const own = { quorum: 2, graceMs: 0 };
    expect(graphNode({ type: 'panel', members, ...own })).to.include(own);
    expect(graphNode({ type: 'critic', members, ...own })).to.include({ ...own, aggregate: 'median' });
    expect(graphNode({ label: 'Critic', members, aggregate: 'lowest' })).to.include({
      role: 'critic',
      graceMs: 30_000,
      aggregate: 'lowest',
      countsIteration: false,
    });
  });

  it('of a rank are its reviewers, of the panel if it has none, and wait for no quorum', () => {
    const rank = graphNode({ type: 'rank', members: ['one'], keep: 3, quorum: 1, graceMs: 5 });
    expect(rank).to.deep.include({ members: [{ id: 'm1', label: 'm1', model: 'one' }], keep: 3 });
    expect(rank).not.to.have.any.keys('quorum', 'graceMs', 'aggregate');
    expect(rank).to.include({ countsIteration: false });
    for (const node of [{}, { members: [] }]) {
      expect(graphNode({ type: 'rank', ...node })).not.to.have.any.keys('members', 'keep');
    }
  });

  it('have no part in runs of agents, judges and plain critics', () => {
    const fields = ['members', 'quorum', 'graceMs', 'keep', 'aggregate'] as const;
    const given = { members: ['one', 'two'], quorum: 1, graceMs: 1, keep: 1, aggregate: 'mean' } as const;
    for (const type of ['agent', 'judge'] as const) {
      expect(graphNode({ ...given, members: ['one', 'two'], type }), type).not.to.have.any.keys(...fields);
    }
    expect(graphNode({ ...given, type: 'critic', members: [] })).not.to.have.any.keys(...fields);
  });
});

describe('A council gets a warning', () => {
  const warnings = (nodes: readonly BlueprintNode[], edges: BlueprintCreate['edges'] = []): readonly string[] =>
    memberIssues(council(nodes, edges)).map(({ path, message, isFault }) => {
      expect(isFault).to.equal(false);
      return `${path}: ${message}`;
    });

  for (const type of ['rank', 'judge'] as const) {
    const last: BlueprintNode = { id: 'r', type };
    const missing = (at: number): readonly string[] => [
      `nodes[${at}]: No path from the entry leads through a panel to the ${type} "r"`,
    ];

    it(`for a ${type} without a panel before it`, () => {
      expect(warnings([{ id: 'a' }, last], chain('a', 'r'))).to.deep.equal(missing(1));
      expect(warnings([last, PANEL], chain('r', 'p'))).to.deep.equal(missing(0));
      // The panel is no entry, so that no run reaches it.
      expect(warnings([{ id: 'a' }, PANEL, last], [...chain('a', 'r'), ...chain('p', 'r')])).to.deep.equal(missing(2));
    });

    it(`not for a ${type} that one path through a panel reaches`, () => {
      expect(warnings([PANEL, { id: 'b' }, last], chain('p', 'b', 'r'))).to.deep.equal([]);
      const ways = [...chain('a', 'p', 'r'), ...chain('a', 'r')];
      expect(warnings([{ id: 'a' }, PANEL, last], ways)).to.deep.equal([]);
      expect(warnings([last, PANEL], chain('r', 'p', 'r'))).to.deep.equal([]);
    });
  }

  it('for members of a node with the same label', () => {
    const members = [{ id: 'a', label: 'Mind' }, { id: 'b' }, { id: 'c', label: 'Mind' }];
    expect(warnings([{ id: 'p', type: 'panel', members }])).to.deep.equal([
      'nodes[0].members[2].label: Members "a" and "c" of node "p" have the same label: drafts and feedback name them alike',
    ]);
  });

  it('for fields of nodes and members whose names are misspelt, and for no other unknown field', () => {
    const members = [{ id: 'a', systemprompt: 'Doubt.', colour: 'red' }, 'gpt'];
    const nodes = [{ id: 'p', type: 'panel', max_output_tokens: 9, temprature: 1, modes: 1, selected: true, members }];
    const found = misspeltFields(council(nodes as BlueprintNode[])).map(({ path, message }) => `${path}: ${message}`);
    expect(found).to.deep.equal([
      'nodes[0]: Node "p": the field "max_output_tokens" has no effect. Is maxOutputTokens meant?',
      'nodes[0]: Node "p": the field "temprature" has no effect. Is temperature meant?',
      'nodes[0]: Node "p": the field "modes" has no effect. Is model meant?',
      'nodes[0].members[0]: Member "a" of node "p": the field "systemprompt" has no effect. Is systemPrompt meant?',
    ]);
  });

  it('for each field that a run ignores', () => {
    const given = { members: ['one', 'two'], quorum: 2, graceMs: 1, keep: 1, aggregate: 'mean' } as const;
    const ignored = (node: Omit<BlueprintNode, 'id'>): readonly string[] =>
      warnings([{ id: 'a', ...node }]).map((text) => (/^nodes\[0\]\.(\w+): Node "a" /.exec(text) ?? [])[1] ?? text);
    const all = { ...given, members: ['one', 'two'] };
    expect(ignored({ ...all, type: 'agent' })).to.deep.equal(['members', 'quorum', 'graceMs', 'keep', 'aggregate']);
    expect(ignored({ ...all })).to.have.length(5);
    expect(ignored({ ...all, type: 'critic' })).to.deep.equal(['keep']);
    expect(ignored({ ...all, type: 'critic', members: [] })).to.deep.equal(['quorum', 'graceMs', 'keep', 'aggregate']);
    expect(ignored({ ...all, type: 'panel' })).to.deep.equal(['keep', 'aggregate']);
    expect(ignored({ ...all, type: 'rank' }).slice(0, 3)).to.deep.equal(['quorum', 'graceMs', 'aggregate']);
  });

  it('for unknown providers of members and of their fallbacks', () => {
    const members = ['openai/x', { model: 'own-name', fallbacks: ['plain', 'mistral/y'] }];
    const issues = modelIssues(council([{ id: 'p', type: 'panel', members }]), {
      builtIn: ['openai', 'mistral'],
      providers: ['mistral'],
      unpriced: () => null,
    });
    expect(issues.map(({ path, node }) => [path, node])).to.deep.equal([['nodes[0].members[0].model', 'p']]);
    const none = modelIssues(council([{ id: 'p', type: 'panel', members }]), {
      builtIn: ['openai', 'mistral'],
      providers: [],
      unpriced: () => null,
    });
    expect(none.map(({ path }) => path)).to.deep.equal([
      'nodes[0].members[0].model',
      'nodes[0].members[1].fallbacks[1]',
    ]);
  });
});
