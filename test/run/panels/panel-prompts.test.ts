import { expect } from 'chai';
import type { GraphNode } from '../../../src/generated/schemas.js';
import { decide } from '../../../src/run/decide.js';
import { promptInputFor } from '../../../src/run/frontier/node-start.js';
import {
  answered,
  attemptOf,
  completed,
  contextOf,
  given,
  graphWith,
  memberGave,
  scored,
  wrote,
} from '../../support/given.js';

const MEMBERS = ['a', 'b', 'c'].map((id) => ({ id, label: id.toUpperCase() }));

describe('The prompts of a panel', () => {
  it('are one text that its members share, but for one with a system prompt of its own', () => {
    const members = [...MEMBERS, { id: 'd', label: 'D', systemPrompt: 'Doubt.' }];
    const { chart, snapshot } = given(graphWith([{ id: 'ask', role: 'panel', members }], []), { pending: true });
    const command = { type: 'ClaimRun', reason: 'started' } as const;
    const { assignments } = decide(chart, snapshot, { command, context: contextOf('one') });
    const texts = [...assignments.values()].map(({ rendered }) => rendered);
    expect(texts).to.have.length(4);
    expect(new Set(texts).size).to.equal(2);
    expect(texts[3]?.system).to.include('Doubt.');
    expect(texts[0]?.system).to.not.include('Doubt.');
  });
});

describe('The feedback that nodes after a panel read', () => {
  const edge = (source: string, target: string) => ({ id: `${source}->${target}`, source, target, condition: null });
  const panel = { id: 'ask', role: 'panel' as const, countsIteration: true, graceMs: 0, members: MEMBERS };
  const graph = (critic: Partial<GraphNode>) =>
    graphWith(
      [panel, { id: 'judge', role: 'critic', ...critic }, { id: 'write' }, { id: 'polish' }],
      [edge('ask', 'judge'), edge('judge', 'write'), edge('write', 'polish')],
    );
  const answers = [answered('a'), answered('b'), answered('c')];
  const FEEDBACK = 'Response B omits costs. Responses A and C agree, as response c says.';

  it('names no letter while they read the answers, because the critic saw them in another order', () => {
    const story = given(graph({})).whenAll(...answers, scored('judge', 4, FEEDBACK));
    expect(promptInputFor(story.run, attemptOf(story.run, 'write')).feedback).to.deep.equal([
      'one response omits costs. some responses agree, as response c says.',
    ]);
    const written = story.when(wrote('write'));
    expect(promptInputFor(written.run, attemptOf(written.run, 'polish')).feedback).to.deep.equal([FEEDBACK]);
  });

  it('hides the labels of a jury while they read the answers', () => {
    const jury = ['x', 'y'].map((id) => ({ id, label: `Model ${id}` }));
    const given2 = jury.map(({ id }) => memberGave(id, { score: 4, feedback: `from ${id}` }));
    const story = given(graph({ members: jury, graceMs: 0 })).whenAll(...answers, ...given2);
    expect(promptInputFor(story.run, attemptOf(story.run, 'write')).feedback).to.deep.equal([
      '## A critic\nfrom x\n\n## A critic\nfrom y',
    ]);
    const written = story.when(wrote('write'));
    expect(promptInputFor(written.run, attemptOf(written.run, 'polish')).feedback).to.deep.equal([
      '## Model x\nfrom x\n\n## Model y\nfrom y',
    ]);
  });

  it('keeps every other word of the critic, also names of models', () => {
    const members = MEMBERS.map((member) => ({ ...member, model: `offline/mind-${member.id}` }));
    const feedback = 'As Mind-A from offline I doubt it; mind-bold stays.';
    const story = given(
      graphWith(
        [
          { ...panel, members },
          { id: 'score', role: 'critic' },
          { id: 'order', role: 'rank' },
        ],
        [edge('ask', 'score'), edge('score', 'order')],
      ),
    ).whenAll(...answers, scored('score', 4, feedback));
    expect(promptInputFor(story.run, attemptOf(story.run, 'order')).feedback).to.deep.equal([feedback]);
  });
});

describe('The answers that a judge reads', () => {
  it('hide a model by which two present themselves, and show one that another answer is about', () => {
    const members = ['a', 'b', 'c'].map((id) => ({
      id,
      label: id.toUpperCase(),
      model: `ollama/${id === 'c' ? 'solar' : 'ash'}`,
    }));
    const panel = { id: 'ask', role: 'panel' as const, countsIteration: true, graceMs: 0, members };
    const edges = [{ id: 'ask->judge', source: 'ask', target: 'judge', condition: null }];
    const story = given(graphWith([panel, { id: 'judge', role: 'judge' as const }], edges)).whenAll(
      answered('a', 'I am ash. Build solar parks.'),
      answered('b', 'As ash, I plant oaks.'),
      answered('c', 'I am solar.'),
    );
    const { answers = [] } = promptInputFor(story.run, attemptOf(story.run, 'judge'));
    expect(answers.map(({ text }) => text)).to.have.members([
      ...['I am [model]. Build solar parks.', 'As [model], I plant oaks.', 'I am solar.'],
    ]);
  });
});

describe('The analysis that nodes after a judge read', () => {
  it('has the words of the judge, also names of models', () => {
    const members = MEMBERS.map((member) => ({ ...member, model: `offline/mind-${member.id}` }));
    const panel = { id: 'ask', role: 'panel' as const, countsIteration: true, graceMs: 0, members };
    const edges = ['ask->judge', 'judge->order'].map((id) => {
      const [source = '', target = ''] = id.split('->');
      return { id, source, target, condition: null };
    });
    const nodes = [panel, { id: 'judge', role: 'judge' as const }, { id: 'order', role: 'rank' as const }];
    const analysis = {
      consensus: ['mind-b is right.'],
      contradictions: [],
      partial_coverage: [],
      unique_insights: [],
      blind_spots: ['As offline/mind-c I see none.'],
    };
    const story = given(graphWith(nodes, edges)).whenAll(answered('a'), answered('b'), answered('c'), (run) =>
      completed(attemptOf(run, 'judge'), { analysis }),
    );
    const read = promptInputFor(story.run, attemptOf(story.run, 'order')).analysis;
    expect(read).to.deep.equal(analysis);
  });
});
