import { expect } from 'chai';
import { readFileSync, readdirSync } from 'node:fs';
import { councilOf } from '../../../src/blueprint/record.js';
import { inspectGraph } from '../../../src/blueprint/validate.js';
import { rolesOf } from '../../../src/council/roles.js';
import { bodyOf, jsonOf, withNodeChanged } from '../../../src/console/pages/blueprint/draft.js';
import { importBlueprint } from '../../../src/console/pages/blueprint/import.js';

/** A blueprint as a front end with React Flow saves it. */
const DRAWN = {
  title: 'Board',
  viewport: { x: 0, y: 0, zoom: 1 },
  nodes: [
    { id: 'start', type: 'input', data: { label: 'Start' }, position: { x: 0, y: 0 } },
    {
      id: '1',
      type: 'agentNode',
      position: { x: 100, y: 20.5 },
      width: 150,
      selected: true,
      data: { label: 'Writer', system_prompt: 'Write.', model: 'gpt-4', tools: ['web_search'], color: '#0af' },
    },
    {
      id: '2',
      type: 'agentNode',
      position: { x: 300, y: 20 },
      data: {
        label: 'Gate',
        role: 'critic',
        systemPrompt: 'Judge.',
        temperature: '0.2',
        max_tokens: 500,
        model: { name: 'gemini-pro' },
        tools: { pdfReader: true, webSearch: false },
      },
    },
    { id: '3', type: 'agentNode', data: { name: 'Editor', config: { prompt: 'Polish.', pdf_reader: true } } },
    { id: 4, data: { label: 'Printer' } },
  ],
  edges: [
    { id: 'e0', source: 'start', target: '1' },
    { id: 'e1', source: '1', target: '2', type: 'smoothstep', animated: true },
    { id: 'e2', source: '2', target: '1', data: { condition: 'critic_score < 8 and iteration_count < 4' } },
    { id: 'e3', source: '2', target: '3', type: 'conditional', label: 'approve', style: { stroke: 'red' } },
    { id: 'e4', source: '3', target: 4 },
    { id: 'e5', source: '3' },
  ],
};

describe('A blueprint from a file', () => {
  const { draft, notes } = importBlueprint(JSON.stringify(DRAWN), 'board.json');

  it('keeps its approval rule, budget, fallbacks and model options', () => {
    const kept = {
      approvals: { quorum: 2 },
      budget: { usd: 0.5 },
      fallbacks: ['other'],
      god_mode: 'always',
      model_options: { god_mode: true },
    };
    const read = importBlueprint(JSON.stringify({ ...DRAWN, ...kept }), 'board.json');
    expect(read.draft).to.deep.include(kept);
    expect(read.notes).to.deep.equal(notes);
  });

  it('of a front end is converted: prompts, models, tools, roles and conditions under "data"', () => {
    expect(draft.name).to.equal('Board');
    expect(draft.nodes.map(({ id }) => id)).to.deep.equal(['1', '2', '3', '4']);
    expect(draft.nodes[0]).to.deep.include({
      label: 'Writer',
      systemPrompt: 'Write.',
      model: 'gpt-4',
      tools: { webSearch: true, pdfReader: false },
    });
    expect(draft.nodes[0]).not.to.have.property('type');
    expect(draft.nodes[1]).to.deep.include({
      label: 'Gate',
      type: 'critic',
      systemPrompt: 'Judge.',
      model: 'gemini-pro',
      temperature: 0.2,
      maxOutputTokens: 500,
      tools: { webSearch: false, pdfReader: true },
    });
    expect(draft.nodes[2]).to.deep.include({ label: 'Editor', systemPrompt: 'Polish.' });
    expect(draft.nodes[2]?.tools).to.deep.equal({ webSearch: false, pdfReader: true });
    expect(councilOf(bodyOf(draft)).edges.map(({ id, type, condition }) => ({ id, type, condition }))).to.deep.equal([
      { id: 'e1', type: 'linear', condition: null },
      { id: 'e2', type: 'conditional', condition: 'score < 8 && iteration < 4' },
      { id: 'e3', type: 'conditional', condition: 'approve' },
      { id: 'e4', type: 'linear', condition: null },
    ]);
  });

  it('keeps unknown fields of nodes and edges', () => {
    expect(draft.nodes[0]).to.deep.include({ data: DRAWN.nodes[1]?.data, width: 150, flowType: 'agentNode' });
    expect(draft.nodes[0]?.position).to.deep.equal({ x: 100, y: 20.5 });
    expect(draft.edges[0]).to.include({ animated: true, flowType: 'smoothstep' });
    expect(draft.edges[2]).to.deep.include({ label: 'approve', style: { stroke: 'red' } });
  });

  it('lists conversions and omitted parts', () => {
    for (const part of ['viewport', 'start', 'agentNode', 'smoothstep', 'critic_score', 'without source and target']) {
      expect(notes.join('\n')).to.include(part);
    }
  });

  it('is a council that the service accepts and can run', () => {
    const council = councilOf(bodyOf(draft));
    expect(inspectGraph(council)).to.deep.equal([]);
    expect(rolesOf(council).map(({ role }) => role)).to.deep.equal(['agent', 'critic', 'agent', 'agent']);
  });

  it('of the service is not changed, in any wrapper', () => {
    const folder = new URL('../../../../schemas/examples/', import.meta.url);
    for (const file of readdirSync(folder).filter((name) => name.endsWith('.json'))) {
      const text = readFileSync(new URL(file, folder), 'utf8');
      const saved = JSON.parse(text) as { name: string; nodes: unknown; edges: { type?: string }[] };
      for (const wrapped of [saved, { blueprint: saved }, [saved]]) {
        const read = importBlueprint(JSON.stringify(wrapped), 'x');
        expect(read.draft.nodes).to.deep.equal(saved.nodes);
        expect(read.draft.name).to.equal(saved.name);
        expect(read.notes).to.deep.equal([]);
      }
    }
  });

  it('imported, saved and imported again stays the same', () => {
    const { nodes, edges } = councilOf(bodyOf(draft));
    const again = importBlueprint(JSON.stringify({ name: 'Board', nodes, edges }), 'x');
    expect(again.draft.nodes).to.deep.equal(nodes);
    expect(again.draft.edges).to.deep.equal(edges);
  });

  it('keeps a chosen role that differs from the label, after it was saved', () => {
    const drawn = { id: '1', type: 'agentNode', data: { label: 'Reviewer', kind: 'LLM' } };
    const { draft: board } = importBlueprint(JSON.stringify({ name: 'Board', nodes: [drawn] }), 'x');
    const { nodes } = councilOf(bodyOf(withNodeChanged(board, 0, { type: 'agent' })));
    const again = importBlueprint(JSON.stringify({ name: 'Board', nodes }), 'x').draft;
    expect(again.nodes).to.deep.equal(nodes);
    expect(rolesOf(councilOf(bodyOf(again)))).to.deep.equal([{ node: '1', role: 'agent' }]);
  });

  it('keeps a chosen role that differs from the label, in the JSON of an unsaved draft', () => {
    for (const type of ['agentNode', undefined]) {
      const drawn = { id: '1', type, data: { label: 'Reviewer', kind: 'LLM' } };
      const { draft: board } = importBlueprint(JSON.stringify({ name: 'Board', nodes: [drawn] }), 'x');
      const chosen = withNodeChanged(board, 0, { type: 'agent' });
      const again = importBlueprint(jsonOf(chosen), 'x').draft;
      expect(again.nodes).to.deep.equal(chosen.nodes);
      expect(rolesOf(councilOf(bodyOf(again)))).to.deep.equal([{ node: '1', role: 'agent' }]);
    }
  });

  it('without a blueprint is refused with a reason', () => {
    for (const text of ['{"a": 1}', '[]', 'null', '{']) expect(() => importBlueprint(text, 'x'), text).to.throw();
  });
});
