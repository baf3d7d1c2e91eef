import { expect } from 'chai';
import { fixedGraph } from '../../src/council/fixed-graph.js';
import { jsonBytes, MAX_DRAFT_BYTES, MAX_FEEDBACK_BYTES } from '../../src/graph/limits.js';
import { readCritique, type Critique } from '../../src/council/executors.js';
import { readAnalysis } from '../../src/council/deliberation/analysis-answer.js';
import { readRanking } from '../../src/council/deliberation/ranking-answer.js';
import { ModelFailed } from '../../src/errors.js';
import type { GraphNode, NodeRole } from '../../src/generated/schemas.js';
import { sampleOf } from '../../src/models/offline/sample.js';
import { offlineModel } from '../../src/models/offline.js';
import type { PromptInput } from '../../src/models/port.js';
import { nodeWith, requestFor } from '../support/prompt-inputs.js';
import { manualSystem } from '../support/manual-system.js';

type State = Partial<Pick<PromptInput, 'topic' | 'draft' | 'feedback' | 'answers' | 'ranking'>>;

const never = new AbortController();
const model = offlineModel({ system: manualSystem() });
const agent = nodeWith({ label: 'Poet', systemPrompt: '' });
const critic = nodeWith({ label: 'Judge', role: 'critic' });

async function drafted(state: State, node = agent): Promise<string> {
  return (await model.ask(requestFor(node, state), never)).text;
}

async function scored(state: State): Promise<Critique> {
  const critique = readCritique((await model.ask(requestFor(critic, state), never)).text);
  if (critique === null) throw new Error('The critique is unusable');
  return critique;
}

describe('offlineModel as author', () => {
  it('writes a titled first draft on the topic and says what it is', async () => {
    const draft = await drafted({ topic: 'Should cities plant more trees?' });
    expect(draft).to.match(/^# Should cities plant more trees\?\n\n## In short\n\n/);
    expect(draft)
      .to.contain('The topic is "Should cities plant more trees?".')
      .and.to.contain('Written by the offline model as Poet');
  });

  it('adds what its critic asked for, and each section once', async () => {
    const first = await drafted({});
    const { feedback } = await scored({ draft: first });
    const second = await drafted({ draft: first, feedback: [feedback, feedback] });
    expect(second.match(/^#+ .*$/gm)).to.deep.equal(['# Trees', '## In short', '## An example', '## Objections']);
    expect(await drafted({ draft: second, feedback: [feedback] })).to.equal(second);
  });

  it('keeps a draft of other authors and signs it with its own label', async () => {
    const draft = await drafted(
      { draft: '  A poem.\n\n- by me' },
      nodeWith({ label: 'Writer', systemPrompt: 'Polish it.' }),
    );
    expect(draft).to.equal(
      '  A poem.\n\n- by me\n\n*Written by the offline model as Writer, told "Polish it.". No language model was asked.*',
    );
  });

  it('lists the three newest feedbacks of other critics in one section', async () => {
    const once = await drafted({ draft: 'A poem.', feedback: ['one', 'two', '## three\n\nlines', 'four'] });
    expect(once).to.contain('## Feedback taken up\n\n- two\n- ## three lines\n- four\n');
    const again = await drafted({ draft: once, feedback: ['two', 'four', 'five'] });
    expect(again).to.contain('- two\n- four\n- five\n');
    expect(again.match(/## Feedback taken up/g)).to.have.length(1);
  });

  it('answers a brief for a draft with prose whatever the role', async () => {
    const request = { ...requestFor(critic), answer: 'draft' as const };
    expect((await model.ask(request, never)).text).to.match(/^# Trees\n/);
  });
});

describe('offlineModel with tools', () => {
  const tools = ['web_search', 'pdf_reader'].map((name) => ({
    name,
    description: '',
    parameters: { type: 'object' as const, properties: {}, required: [] },
  }));
  const brief = { draft: '# Trees\n\nGreen.', feedback: [] };
  const draftAfter = async (draft: string, results: readonly string[]): Promise<string> => {
    const request = { ...requestFor(agent, { ...brief, draft }), tools };
    const { calls = [] } = await model.ask(request, never);
    const exchanges = calls.map((call, index) => ({ call, result: results[index] ?? '' }));
    return (await model.ask({ ...request, rounds: [{ text: '', exchanges }] }, never)).text;
  };

  it('calls each once with the topic, all at once, and a critic none', async () => {
    const { text, calls } = await model.ask({ ...requestFor(agent, { topic: 'Oaks\nand elms' }), tools }, never);
    expect(text).to.equal('');
    expect(calls?.map(({ name, argumentsJson }) => [name, argumentsJson])).to.deep.equal([
      ['web_search', '{"query":"Oaks and elms"}'],
      ['pdf_reader', '{"query":"Oaks and elms"}'],
    ]);
    expect(await model.ask({ ...requestFor(critic, brief), tools }, never)).not.to.have.any.keys('calls');
  });

  it('quotes what came back with its mark in one section, which the next draft replaces', async () => {
    const passage = (text: string): string => `<passage cite="[4f2a9c01:3]" page="3">\n${text}\n</passage>`;
    const first = await draftAfter(brief.draft, [
      '<tool_result failed="yes">\nNo.\n</tool_result>',
      passage('Old\noaks'),
    ]);
    expect(first)
      .to.include('- Asked web_search, got nothing to quote.\n- "Old oaks" [4f2a9c01:3]')
      .and.include('has not understood it');
    const second = await draftAfter(first, ['', passage('New oaks')]);
    expect(second).to.include('"New oaks"').and.not.include('"Old oaks"');
    expect(second.match(/## Looked up/g)).to.have.length(1);
  });
});

describe('offlineModel as critic', () => {
  for (const draft of [null, '', ' \n']) {
    it(`gives 0 and says so when the draft is ${JSON.stringify(draft)}`, async () => {
      expect(await scored({ draft })).to.deep.equal({
        score: 0,
        feedback: 'Offline critic, by fixed rules: there is no draft.',
      });
    });
  }

  it('states its rule, the points and the first two parts that are missing', async () => {
    const { score, feedback } = await scored({ draft: 'A poem.' });
    expect(score).to.equal(4);
    expect(feedback).to.contain('4 points for a text, 1 each for a title, the section "In short"');
    expect(feedback)
      .to.contain('That makes 4 of 10.')
      .and.to.match(/Add a title\. Add the section "In short"\.$/);
    expect(jsonBytes(feedback)).to.be.below(MAX_FEEDBACK_BYTES);
  });

  it('approves a draft of other authors after two rounds of rework', async () => {
    const scores: number[] = [];
    const feedback: string[] = [];
    for (let draft = 'A poem.'; scores.length < 3; draft = await drafted({ draft, feedback })) {
      const critique = await scored({ draft });
      scores.push(critique.score);
      feedback.push(critique.feedback);
    }
    expect(scores).to.deep.equal([4, 6, 8]);
  });
});

describe('offlineModel in a panel', () => {
  const member = nodeWith({ role: 'panel', label: 'Panel', systemPrompt: 'Answer in full.' });
  const headings = (text: string): string => (text.match(/^## .*$/gm) ?? []).join();
  const answersOf = async (models: readonly string[]): Promise<string[]> =>
    await Promise.all(models.map(async (name) => await drafted({}, { ...member, model: name })));

  it('answers by a mind for each model, which names neither node nor instructions', async () => {
    const texts = await answersOf(['offline-1', 'offline-2', 'offline-3', 'offline-4']);
    expect(new Set(texts.map(headings)).size).to.equal(4);
    for (const text of texts) {
      expect(text).to.match(/\*Written by the offline model\. No language model was asked\.\*$/);
      expect(text).not.to.contain('Panel').and.not.contain('Answer in full');
    }
    expect(await answersOf(['offline-5', 'offline-5'])).to.deep.equal([texts[0], texts[0]]);
  });

  it('has other minds by instructions and by temperature', async () => {
    const text = await drafted({}, member);
    const others = [{ systemPrompt: 'Answer in full!' }, { temperature: 0.1 }].map((change) => ({
      ...member,
      ...change,
    }));
    for (const other of others) expect(headings(await drafted({}, other))).not.to.equal(headings(text));
  });

  it('adds its sections to a draft that is there, and what its critic asked for', async () => {
    const draft = await drafted({ draft: '# Trees\n\nGreen.', feedback: [] }, { ...member, model: 'offline-4' });
    expect(draft).to.match(/^# Trees\n\nGreen\.\n\n## /);
  });
});

describe('offlineModel after a panel', () => {
  const answers = [
    { letter: 'A', text: '# Trees\n\n## In short\n\nGreen.' },
    {
      letter: 'B',
      text: '# Trees\n\n## Objections\n\nCost.\n\n*Written by the offline model. No language model was asked.*',
    },
    { letter: 'C', text: 'Nothing.' },
  ];
  const asked = async (role: NodeRole, fields: Partial<GraphNode> = {}): Promise<string> =>
    (await model.ask(requestFor(nodeWith({ role, ...fields }), { answers }), never)).text;

  it('ranks the responses by their parts and says by which rule', async () => {
    const found = readRanking(await asked('rank'), ['A', 'B', 'C']);
    expect(found?.ranking.at(-1)).to.equal('C');
    expect(found?.comment)
      .to.contain('Offline reviewer, by fixed rules')
      .and.contain('Response C has 0')
      .and.contain('No language model was asked.');
  });

  it('ranks by what its mind cares about', async () => {
    const firsts = await Promise.all(
      ['offline-1', 'offline-2', 'offline-3', 'offline-4'].map(async (name) => {
        return readRanking(await asked('rank', { model: name }), ['A', 'B', 'C'])?.ranking[0];
      }),
    );
    expect(new Set(firsts)).to.deep.equal(new Set(['A', 'B']));
  });

  it('compares which parts the responses have, and says what it is', async () => {
    const found = readAnalysis(await asked('judge'), ['A', 'B', 'C']);
    expect(found).to.deep.equal({
      consensus: [],
      contradictions: [
        {
          topic: 'Where to begin',
          stances: [
            { response: 'A', stance: 'It begins with the section "In short".' },
            { response: 'B', stance: 'It begins with the section "Objections".' },
          ],
        },
      ],
      partial_coverage: [{ responses: ['A', 'B'], point: 'They have a title.' }],
      unique_insights: [
        { response: 'A', insight: 'It alone has the section "In short".' },
        { response: 'B', insight: 'It alone has the section "Objections".' },
      ],
      blind_spots: [
        'None has the section "An example".',
        'None has the section "Next step".',
        'What the responses say: the offline judge compares their form by fixed rules. No language model was asked.',
      ],
    });
  });

  it('writes one draft from the best response and the parts that others have', async () => {
    const ranking = [
      { letter: 'B', points: 2 },
      { letter: 'A', points: 1 },
      { letter: 'C', points: 0 },
    ];
    const draft = await drafted({ answers, ranking });
    expect(draft).to.match(/^# Trees\n\n## Objections\n\nCost\.\n\n## In short\n/);
    expect(draft.match(/^\*Written by .*$/gm)).to.have.length(1);
    expect(await drafted({ answers })).to.match(/^# Trees\n\n## In short\n\nGreen\.\n\n## Objections\n/);
  });

  it('scores the responses together', async () => {
    expect((await scored({ answers })).score).to.equal(7);
  });
});

describe('offlineModel in a jury', () => {
  it('takes up what its own critic asks for beside the feedback of others', async () => {
    const { feedback } = await scored({ draft: 'A poem.' });
    const draft = await drafted({ draft: 'A poem.', feedback: [`## Truth\n${feedback}\n\n## Use\nFine.`] });
    expect(draft).to.match(/^# Trees\n\nA poem\.\n\n## In short\n/);
  });

  it('scores by a mind for each model, and for instructions to score only one thing', async () => {
    const scoreOf = async (fields: Partial<GraphNode>): Promise<number | undefined> => {
      const request = requestFor({ ...critic, ...fields }, { draft: '# Trees\n\n## In short\n\nGreen.' });
      return readCritique((await model.ask(request, never)).text)?.score;
    };
    expect(await scoreOf({})).to.equal(6);
    expect(await scoreOf({ model: 'offline-2' })).to.equal(5);
    expect(await scoreOf({ systemPrompt: 'Be fair.' })).to.equal(6);
    const scores = await Promise.all(
      ['!', '!!', '!!!', '!!!!'].map((end) => scoreOf({ systemPrompt: `Score only the use${end}` })),
    );
    expect(scores.toSorted()).to.deep.equal([5, 5, 5, 6]);
  });
});

describe('offlineModel: bounds', () => {
  for (const filler of ['x', '中', '😀', '\u0001', '"', 'a b\n\n', '## A\n\n']) {
    it(`keeps drafts of ${JSON.stringify(filler)} below the limit over 50 executions`, async () => {
      let draft = filler.repeat(Math.floor(100_000 / filler.length));
      const feedback: string[] = [];
      for (let round = 0; round < 50; round += 1) {
        const critique = await scored({ draft, topic: filler.repeat(100) });
        feedback.push(critique.feedback, `${filler} ${round} `.repeat(500));
        draft = await drafted({ draft, feedback, topic: filler.repeat(100) });
        expect(jsonBytes(draft)).to.be.below(MAX_DRAFT_BYTES);
      }
    });
  }

  it('keeps the drafts of two branches that join again and again from doubling', async () => {
    let joined: string | null = null;
    for (let round = 0; round < 25; round += 1) {
      const branches = await Promise.all(
        ['A', 'B'].map(async (label) => `## ${label}\n${await drafted({ draft: joined }, nodeWith({ label }))}`),
      );
      joined = branches.join('\n\n');
    }
    expect(joined?.length).to.be.below(12_000);
  });

  it('writes first drafts so short that 198 of them can be joined', async () => {
    const draft = await drafted(
      { topic: 'Should cities plant more trees?' },
      nodeWith({ label: 'Member 123', systemPrompt: 'You look at the costs of it.' }),
    );
    expect(198 * jsonBytes(`## Member 123\n${draft}\n\n`)).to.be.below(MAX_DRAFT_BYTES);
  });
});

describe('offlineModel: a call', () => {
  it('gives the same answer to the same brief', async () => {
    const request = requestFor(agent, { topic: 'Trees', draft: 'Green.', feedback: ['Longer.'] });
    const other = offlineModel({ system: manualSystem(99) });
    expect(await other.ask(structuredClone(request), never)).to.deep.equal(await model.ask(request, never));
  });

  it('counts a token for each four characters begun', async () => {
    const request = { ...requestFor(agent), system: 'four', prompt: '5' };
    const { text, usage } = await model.ask(request, never);
    expect(usage).to.include({ inputTokens: 2, outputTokens: Math.ceil(text.length / 4), costUsd: 0 });
  });

  it('waits for its latency, and stops when aborted', async () => {
    const system = manualSystem();
    const slow = offlineModel({ latencyMs: 300, system });
    const answer = slow.ask(requestFor(agent), never);
    expect(system.timers()).to.equal(1);
    system.advance(300);
    expect((await answer).text).to.contain('# Trees');

    const abort = new AbortController();
    const aborted = slow.ask(requestFor(agent), abort).catch((error: unknown) => error);
    abort.abort();
    expect(await aborted)
      .to.be.instanceOf(ModelFailed)
      .with.nested.property('data.kind', 'aborted');
    expect(system.timers()).to.equal(0);
  });

  it('does not answer an aborted call', async () => {
    const error = await model
      .ask(requestFor(agent), { signal: AbortSignal.abort() })
      .catch((reason: unknown) => reason);
    expect(error).to.be.instanceOf(ModelFailed);
  });

  it('fits the members of the fixed graph', async () => {
    const [master, , writer] = fixedGraph({ timeoutMs: 1000, maxAttempts: 4 }).nodes;
    const draft = await drafted({}, master);
    expect(draft).to.contain('as Master');
    expect(await drafted({ draft }, writer))
      .to.contain('as Writer')
      .and.not.to.contain('as Master');
  });
});

describe('The sample of a schema', () => {
  it('ends, also of a schema that requires itself many times', () => {
    const names = Array.from({ length: 20 }, (_, at) => `field${at}`);
    const properties = Object.fromEntries(names.map((name) => [name, { $ref: '#' }]));
    const sample = sampleOf({ type: 'object', required: names, properties }, 'A text');
    expect(jsonBytes(sample)).to.be.within(1_000, 200_000);
  });

  for (const [what, items] of [
    ['a long text', { type: 'string', minLength: 300_000_000 }],
    ['a long constant', { const: 'a '.repeat(10_000) }],
    ['a long choice', { enum: ['a '.repeat(10_000)] }],
  ] as const)
    it(`stays small where a schema wants ${what} many times`, () => {
      const schema = { type: 'array', minItems: 100, items: { type: 'array', minItems: 100, items } };
      expect(jsonBytes(sampleOf(schema, 'A text'))).to.be.within(1_000, 400_000);
    });

  it('has no value for a reference that cannot be read', () => {
    expect(sampleOf({ $ref: '#/%' }, 'A text')).to.equal(null);
  });
});
