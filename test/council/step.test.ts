import { spent } from '../support/usage.js';
import { expect } from 'chai';
import { MAX_DRAFT_BYTES, MAX_FEEDBACK_CHARS } from '../../src/graph/limits.js';
import type { Ask, StepFailure } from '../../src/council/executors.js';
import { executeStep, type StepOutcome } from '../../src/council/step.js';
import { ModelFailed } from '../../src/errors.js';
import type { GraphNode } from '../../src/generated/schemas.js';
import { assigned, nodeWith } from '../support/prompt-inputs.js';
import { manualSystem } from '../support/manual-system.js';
import { scriptedModel, type Reply, type ScriptedModel } from '../support/scripted-model.js';

const agent = nodeWith({ id: 'poet' });
const critic = nodeWith({ id: 'judge', role: 'critic' });

function execute(model: ScriptedModel, node: GraphNode, signal = new AbortController().signal): Promise<StepOutcome> {
  return executeStep({
    node,
    ...assigned(node, { draft: node.role === 'critic' ? 'Green.' : null }),
    ask: (request) => model.ask(request, { signal }),
    signal,
    monotonicMs: manualSystem().monotonicMs,
  });
}

const answers = [
  { letter: 'A', text: 'Oaks.' },
  { letter: 'B', text: 'Elms.' },
];
const reviewer = nodeWith({ id: 'review', role: 'rank' });
const comparer = nodeWith({ id: 'compare', role: 'judge' });

/** Executes a node whose prompt holds two answers of a panel. */
function executeOn(model: ScriptedModel, node: GraphNode): Promise<StepOutcome> {
  const { signal } = new AbortController();
  const { monotonicMs } = manualSystem();
  const ask: Ask = (request) => model.ask(request, { signal });
  return executeStep({ node, ...assigned(node, { answers }), ask, signal, monotonicMs });
}

async function failureOf(node: GraphNode, ...replies: Reply[]): Promise<StepFailure> {
  const outcome = await execute(scriptedModel(replies), node);
  if (outcome.kind !== 'failed') throw new Error(`The step did not fail: ${outcome.kind}`);
  return outcome.failure;
}

/** Usage of one answer of the scripted model. */
const USAGE = spent(10, 5);

const good = { text: '{"score":9,"feedback":"Fine."}' };
const bad = { text: '9/10, well done' };

describe('A step of an agent', () => {
  it('returns the answer as the draft, with its usage', async () => {
    const system = manualSystem();
    const model = scriptedModel(() => {
      system.advance(30.4);
      return { text: ' Green.\n' };
    });
    const signal = new AbortController().signal;
    const { monotonicMs } = system;
    const outcome = await executeStep({
      node: agent,
      ...assigned(agent),
      ask: (r) => model.ask(r, { signal }),
      signal,
      monotonicMs,
    });
    const usage = spent(10, 5);
    expect(outcome).to.deep.equal({ kind: 'drafted', draft: ' Green.\n', usage, durationMs: 30 });
  });

  it("passes the node's model settings on, and no others", async () => {
    const model = scriptedModel();
    await execute(model, nodeWith({ model: 'm', temperature: 0, maxOutputTokens: 9 }));
    await execute(model, agent);
    expect(model.requests[0]).to.include({ model: 'm', temperature: 0, maxOutputTokens: 9, answer: 'draft' });
    expect(model.requests[1]).to.have.all.keys('system', 'prompt', 'promptInput', 'answer', 'beforeRepeat');
  });

  it('accepts a draft of exactly the limit in JSON', async () => {
    const outcome = await execute(scriptedModel([{ text: '\n' + 'x'.repeat(MAX_DRAFT_BYTES - 4) }]), agent);
    expect(outcome.kind).to.equal('drafted');
  });

  it('refuses a draft one byte over the limit, naming node and sizes', async () => {
    const failure = await failureOf(agent, { text: '\n' + 'x'.repeat(MAX_DRAFT_BYTES - 3) });
    const message = 'Cannot take the draft of node "poet": 131073 bytes as JSON, at most 131072 allowed';
    expect(failure).to.deep.equal({ kind: 'draft_too_large', message, retryable: false, usage: USAGE });
  });

  it('removes the thoughts at the start of an answer from the draft', async () => {
    for (const text of ['<think>Hm.</think>\n\nGreen.', 'Hm.\n</think>\nGreen.']) {
      expect(await execute(scriptedModel([{ text }]), agent)).to.include({ kind: 'drafted', draft: 'Green.' });
    }
  });

  it('fails retryably with thoughts_only on an answer that ends within its thoughts', async () => {
    const failure = await failureOf(agent, { text: '<think>Green, or perhaps' });
    expect(failure).to.include({ kind: 'thoughts_only', retryable: true });
    expect(failure.message).to.contain('node "poet"').and.not.contain('perhaps');
  });

  it('fails retryably with thoughts_only on an answer whose text all went into its thoughts', async () => {
    const failure = await failureOf(agent, { text: '<think>Hm</think>\n' });
    expect(failure).to.include({ kind: 'thoughts_only', retryable: true });
    expect(failure.message).to.equal('Cannot use the draft of node "poet": its answer holds thoughts and no text');
  });

  for (const text of ['', ' \n\t']) {
    it(`fails retryably on the empty draft ${JSON.stringify(text)}`, async () => {
      expect(await failureOf(agent, { text })).to.include({ kind: 'empty_answer', retryable: true });
    });
  }
});

describe('A step of a critic', () => {
  it('asks once more after an unusable answer, shows it, and sums the usage', async () => {
    const model = scriptedModel([bad, good]);
    const outcome = await execute(model, critic);
    expect(outcome).to.deep.include({ kind: 'scored', score: 9, usage: spent(20, 10) });
    expect(model.requests.map(({ answer }) => answer)).to.deep.equal(['critique', 'critique']);
    expect(model.requests[1]?.prompt).to.contain('the answer was "9/10, well done"; wanted is one JSON object');
  });

  it('fails retryably after two unusable answers, quoting the second', async () => {
    const failure = await failureOf(critic, { text: 'no' }, bad, good);
    expect(failure).to.include({ kind: 'unusable_critique', retryable: true });
    expect(failure.message).to.contain('node "judge"').and.to.contain('"9/10, well done"');
  });

  it('says that an unusable answer went into its thoughts', async () => {
    const thoughts = { text: '<think>{"score":9,"feedback":"x"}</think>' };
    const { message } = await failureOf(critic, thoughts, thoughts);
    expect(message).to.contain('the answer was "" after its thoughts; wanted is one JSON object');
  });

  for (const kind of ['empty_answer', 'no_text'] as const) {
    it(`asks once more after an empty call (${kind}), then fails retryably`, async () => {
      const nothing: Reply = { error: new ModelFailed('Nothing came', { kind, retryable: true }) };
      expect(await execute(scriptedModel([nothing, good]), critic)).to.include({ kind: 'scored', score: 9 });
      expect(await failureOf(critic, nothing, nothing, good)).to.include({
        kind: 'unusable_critique',
        retryable: true,
      });
    });
  }

  it('quotes only the start of a long unusable answer, well-formed', async () => {
    const { message } = await failureOf(critic, bad, { text: '😀'.repeat(50_000).slice(1) });
    expect(message.length).to.be.below(600);
    expect(message.isWellFormed()).to.equal(true);
  });

  const feedbackOf = async (feedback: string): Promise<string> => {
    const outcome = await execute(scriptedModel([{ text: JSON.stringify({ score: 9, feedback }) }]), critic);
    return outcome.kind === 'scored' ? outcome.feedback : '';
  };

  it('keeps a feedback of as many characters as its prompt allows, in any script', async () => {
    const { rendered } = assigned(critic, { draft: 'Green.' });
    const limit = Number(/"feedback" says in at most (\d+) characters/.exec(rendered.system)?.[1]);
    for (const sign of ['x', '很', '😀', '"', '\u0001']) {
      const exact = sign.repeat(limit);
      expect(await feedbackOf(exact)).to.equal(exact);
      expect(await feedbackOf(`${exact}${sign}`)).to.equal(exact);
    }
  });

  it('cuts a longer feedback at a sentence', async () => {
    for (const sentence of ['A sentence of some words. ', '这份草稿的第二部分需要更多的例子。']) {
      const feedback = await feedbackOf(sentence.repeat(1000));
      expect([...feedback].length).to.be.within(MAX_FEEDBACK_CHARS - sentence.length, MAX_FEEDBACK_CHARS);
      expect(feedback.endsWith(sentence.trim())).to.equal(true);
    }
  });
});

describe('A step of a member of a panel', () => {
  it('returns the answer as a draft', async () => {
    const outcome = await execute(scriptedModel([{ text: '<think>Hm.</think>Green.' }]), nodeWith({ role: 'panel' }));
    expect(outcome).to.include({ kind: 'drafted', draft: 'Green.' });
  });
});

describe('A step of a reviewer', () => {
  const ranked = { text: '{"ranking":["B","A"],"comment":"Elms grow."}' };
  const partial = { text: '{"ranking":["B"]}' };

  it('returns the letters, best first, and the comment', async () => {
    const model = scriptedModel([ranked]);
    const outcome = await executeOn(model, reviewer);
    expect(outcome).to.deep.include({ kind: 'ranked', ranking: ['B', 'A'], comment: 'Elms grow.', usage: USAGE });
    expect(model.requests[0]?.answer).to.equal('ranking');
  });

  it('asks once more after an incomplete ranking, naming the letters', async () => {
    const model = scriptedModel([partial, ranked]);
    expect(await executeOn(model, reviewer)).to.deep.include({ kind: 'ranked', usage: spent(20, 10) });
    expect(model.requests[1]?.prompt).to.contain(
      'wanted is one JSON object with a list "ranking" of the letters A and B, each once, and a string "comment". ' +
        'Rank the responses again.',
    );
  });

  it('fails retryably after two unusable rankings', async () => {
    const outcome = await executeOn(scriptedModel([partial, { text: 'no' }, ranked]), reviewer);
    expect(outcome).to.have.nested.property('failure.kind', 'unusable_ranking');
    expect(outcome).to.have.nested.property('failure.retryable', true);
    expect(outcome)
      .to.have.nested.property('failure.message')
      .that.contains('Cannot use the ranking of node "review": the answer was "no"');
  });
});

describe('A step of a judge', () => {
  const analysis = {
    consensus: ['Trees.'],
    contradictions: [],
    partial_coverage: [],
    unique_insights: [{ response: 'A', insight: 'Oaks' }],
    blind_spots: [],
  };
  const analysed = { text: JSON.stringify(analysis) };

  it('returns the analysis', async () => {
    const model = scriptedModel([analysed]);
    expect(await executeOn(model, comparer)).to.deep.include({ kind: 'analysed', analysis, usage: USAGE });
    expect(model.requests[0]?.answer).to.equal('analysis');
  });

  it('asks once more after an unusable or empty answer, then fails retryably', async () => {
    const nothing: Reply = { error: new ModelFailed('Nothing came', { kind: 'empty_answer', retryable: true }) };
    const model = scriptedModel([nothing, analysed]);
    expect(await executeOn(model, comparer)).to.include({ kind: 'analysed' });
    expect(model.requests[1]?.prompt)
      .to.contain('"blind_spots", each response as')
      .and.contain('Compare the responses again.');
    const outcome = await executeOn(scriptedModel([{ text: '{}' }, nothing, analysed]), comparer);
    expect(outcome).to.have.nested.property('failure.kind', 'unusable_analysis');
    expect(outcome).to.have.nested.property('failure.retryable', true);
  });
});

describe('A step whose model fails', () => {
  it("reports the failure's kind, whether it is retryable, and the requested wait", async () => {
    const error = new ModelFailed('Busy', { kind: 'rate_limited', retryable: true, retryAfterMs: 700 });
    const failure = { kind: 'rate_limited', message: 'Busy', retryable: true, retryAfterMs: 700 };
    expect(await failureOf(agent, { error })).to.deep.equal(failure);
  });

  it('reports the usage of all its calls, unusable and failed ones too', async () => {
    const usage = spent(7, 0);
    const error = new ModelFailed('Cut off', { kind: 'max_tokens', retryable: false, usage });
    const cost = spent(17, 5);
    expect(await failureOf(critic, bad, { error })).to.deep.include({ kind: 'max_tokens', usage: cost });
    expect(
      await failureOf(agent, { error: new ModelFailed('Busy', { kind: 'other', retryable: true }) }),
    ).not.to.have.any.keys('usage');
  });

  it('reports a cost that the provider reports without tokens', async () => {
    const usage = { ...spent(null, null), costUsd: 0.5 };
    const error = new ModelFailed('Cut off', { kind: 'max_tokens', retryable: false, usage });
    expect(await failureOf(agent, { error })).to.deep.include({ kind: 'max_tokens', usage });
  });

  it('reports any other error as final, with its message', async () => {
    const failure = { kind: 'model_error', message: 'x is not a function', retryable: false };
    expect(await failureOf(agent, { error: new TypeError('x is not a function') })).to.deep.equal(failure);
    expect(await failureOf(agent, { error: 'thrown text' })).to.include({
      kind: 'model_error',
      message: 'thrown text',
    });
  });

  it('bounds the text of an error and makes it well-formed', async () => {
    const { message } = await failureOf(agent, { error: new Error('😀'.repeat(100_000).slice(1)) });
    expect(message).to.have.length(2000);
    expect(message.isWellFormed()).to.equal(true);
  });
});

describe('An aborted step', () => {
  for (const [node, text] of [
    [agent, 'Green.'],
    [critic, good.text],
    [critic, bad.text],
  ] as const) {
    it(`drops the answer ${text} to the ${node.role} after the abort, and asks no second time`, async () => {
      const model = scriptedModel(['hold', good]);
      const abort = new AbortController();
      const outcome = execute(model, node, abort.signal);
      await model.called(1);
      abort.abort();
      model.held[0]?.release(text);
      expect(await outcome).to.have.nested.property('failure.kind', 'aborted');
      expect(model.requests).to.have.length(1);
    });
  }

  it('reports an abort, whichever error the adapter throws', async () => {
    const model = scriptedModel(['hold']);
    const abort = new AbortController();
    const outcome = execute(model, agent, abort.signal);
    await model.called(1);
    abort.abort();
    model.held[0]?.fail(new ModelFailed('cut', { kind: 'network_error', retryable: true }));
    expect(await outcome).to.have.nested.property('failure.kind', 'aborted');
  });
});
