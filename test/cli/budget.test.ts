import { expect } from 'chai';
import { eventLine } from '../../src/cli/terminal/event-line.js';
import type { CouncilBench } from '../support/council-command.js';
import { councilBench, resultIn } from '../support/council-command.js';

const TOPIC = 'Trees';
const PAUSED = /Paused for its budget before \w+: 0 of 100 tokens spent.*at least (\d+) tokens/;

describe('The budget of council run', () => {
  let bench: CouncilBench;

  beforeEach(() => {
    bench = councilBench();
  });
  afterEach(() => bench.clear());

  const council = (more: object): string => {
    const nodes = [{ id: 'poet', maxOutputTokens: 100 }];
    return bench.written('council.json', JSON.stringify({ name: 'Poets', nodes, ...more }));
  };

  it('is that of the options', async () => {
    const words = [TOPIC, '--budget-tokens', '100', '--budget-usd', '0.50', '--on-exceeded', 'fail', '--json'];
    const ended = await bench.run(words);
    expect(ended.code, ended.stderr).to.equal(1);
    const { status, error, budget } = resultIn(ended);
    expect(status).to.equal('failed');
    expect(error).to.include('0 and 0 tokens spent of $0.5 and 100 tokens');
    expect(budget).to.include({ usd: 0.5, tokens: 100, on_exceeded: 'fail' });
    expect(ended.stderr).to.include('no calls').and.not.include('not reported');
  });

  it('is that of the blueprint without options', async () => {
    const file = council({ budget: { tokens: 100, on_exceeded: 'fail' } });
    const spent = await bench.run([TOPIC, '--blueprint', file, '--json']);
    expect(resultIn(spent).budget).to.include({ tokens: 100, on_exceeded: 'fail' });
    const own = await bench.run([TOPIC, '--blueprint', file, '--budget-tokens', '9000', '--json']);
    expect(resultIn(own)).to.include({ status: 'completed' });
    expect(resultIn(own).budget).to.include({ tokens: 9000, on_exceeded: 'pause' });
  });

  it('pauses the run with what is spent and needed, and goes on with a larger one', async () => {
    const input = 'a\nedit\napprove tokens=101\napprove tokens=90000 It is worth it.\n';
    const ended = await bench.run([TOPIC, '--budget-tokens', '100', '--json'], { input });
    expect(ended.code, ended.stderr).to.equal(0);
    expect(ended.stderr).to.match(PAUSED).and.include('An approval needs a new total').and.not.include('God Mode');
    expect(ended.stderr).to.include('"edit" is not an answer: type approve with a new total, or reject');
    expect(ended.stderr).to.match(/The next calls need a total budget of at least \d+ tokens/);
    expect(resultIn(ended).budget).to.include({ tokens: 90_000 });
  });

  it('leaves the run paused if its input ends', async () => {
    const ended = await bench.run([TOPIC, '--budget-tokens', '100', '--json']);
    expect(ended.code).to.equal(1);
    expect(resultIn(ended)).to.include({ status: 'paused', pause_reason: 'budget' });
  });

  it('in US dollars is refused if a model has no price', async () => {
    const env = { OPENAI_API_KEY: 'x', OPENAI_MODEL: 'no-such', MODEL_PROVIDER: 'openai' };
    const ended = await bench.run([TOPIC, '--budget-usd', '1'], { env });
    expect(ended).to.include({ code: 2, stdout: '' });
    expect(ended.stderr).to.include('Cannot use the budget: Model "openai/no-such" has no price');
  });

  it('that is no amount, or an end without an amount, is refused with the usage', async () => {
    for (const words of [
      ['--budget-usd', '0'],
      ['--budget-usd', 'much'],
      ['--budget-tokens', '1.5'],
      ['--on-exceeded', 'fail'],
      ['--budget-tokens', '9', '--on-exceeded', 'wait'],
    ]) {
      const ended = await bench.run([TOPIC, ...words]);
      expect(ended).to.include({ code: 2, stdout: '' });
      expect(ended.stderr, words.join(' ')).to.match(/--(budget-\w+|on-exceeded) (takes|needs)/);
    }
  });

  it('that finishes a run is named as its end by council run, state and tail', async () => {
    const nodes = ['poet', 'reader'].map((id) => ({ id, maxOutputTokens: 200 }));
    const edges = [{ source: 'poet', target: 'reader' }];
    const file = council({ nodes, edges, budget: { tokens: 450, on_exceeded: 'finish' } });
    const end = 'Stopped at the budget; later nodes did not run';
    const ended = await bench.run([TOPIC, '--blueprint', file, '--json']);
    expect(ended.code, ended.stderr).to.equal(0);
    expect(ended.stderr).to.include(`${end}. Completed in`).and.not.include('  reader');
    const runId = resultIn(ended).run_id;
    expect((await bench.council(['state', runId])).stdout).to.match(new RegExp(`^end +${end}$`, 'm'));
    for (const command of ['tail', 'events']) {
      const { stdout } = await bench.council([command, runId]);
      expect(stdout).to.match(new RegExp(`RunCompleted +${end}: score none`));
    }
  });

  it('that finishes a run before its exact output leaves standard output empty, says so and ends with exit code 1', async () => {
    const budget = { tokens: 450, on_exceeded: 'finish' };
    const file = council({ nodes: [{ id: 'poet', maxOutputTokens: 200 }], edges: [], output_schema: {}, budget });
    const ended = await bench.run([TOPIC, '--blueprint', file]);
    expect(ended, ended.stderr).to.include({ code: 1, stdout: '' });
    expect(ended.stderr).to.match(/Completed in .*There is no output, because its node did not run/);
    const json = await bench.run([TOPIC, '--blueprint', file, '--json']);
    expect(json.code, json.stderr).to.equal(1);
    expect(resultIn(json)).to.include({ status: 'completed', final_output: null });
  });

  it('whose pause is rejected is named by council run, state and tail, not God Mode', async () => {
    const end = 'Rejected at the pause for the budget';
    const ended = await bench.run([TOPIC, '--budget-tokens', '100', '--json'], { input: 'reject\n' });
    expect(ended.code, ended.stderr).to.equal(1);
    expect(ended.stderr).to.match(new RegExp(`^Failed after .*: ${end}$`, 'm'));
    const { run_id: runId, error } = resultIn(ended);
    expect(error).to.equal('Rejected by the user in God Mode');
    const words = [['state'], ['tail'], ['events'], ['diff', '--from', '1']];
    const shown = await Promise.all(words.map(([name = '', ...more]) => bench.council([name, runId, ...more])));
    for (const { stdout } of shown) expect(stdout).to.include(end).and.not.include('God Mode');
  });

  it('is named by council tail at the start of a run and at each pause, with what is spent and needed', async () => {
    const ended = await bench.run([TOPIC, '--budget-tokens', '100', '--budget-usd', '2', '--json']);
    const { stdout } = await bench.council(['events', resultIn(ended).run_id]);
    expect(stdout).to.match(/RunRequested .*built-in council, budget \$2 and 100 tokens, then pause/);
    expect(stdout).to.match(
      /RunPaused .*pause 1 for the budget, before master_agent: \$0 of \$2, 0 of 100 tokens spent\. The next calls need a total budget of at least \$0 and \d{4} tokens\./,
    );
  });

  it('and the cost of a run are in the JSON of council state, as in a poll', async () => {
    const poll = resultIn(await bench.run([TOPIC, '--budget-tokens', '90000', '--json']));
    const { stdout } = await bench.council(['state', poll.run_id, '--json']);
    expect(JSON.parse(stdout)).to.deep.include({ usage: poll.usage, budget: poll.budget });
  });

  it('and the cost of a run are shown by council state and council tail', async () => {
    const started = await bench.run([TOPIC, '--budget-tokens', '90000', '--json']);
    const runId = resultIn(started).run_id;
    const { stdout: state } = await bench.council(['state', runId]);
    expect(state).to.match(/^usage +5 calls, \d+ tokens in, \d+ out, \$0$/m);
    expect(state).to.match(/^budget +\d+ of 90000 tokens, then pause$/m);
    const { stdout: first } = await bench.council(['state', runId, '--at', '0']);
    expect(first)
      .to.match(/^usage +no calls$/m)
      .and.match(/^budget +0 of 90000 tokens/m);
    const { stdout: tail } = await bench.council(['tail', runId]);
    expect(tail).to.match(/NodeCompleted .*to critic_agent, \d+ tokens in, \d+ out, \$0: draft of/);
    expect(tail).to.match(/RunCompleted .*, \d+ tokens in, \d+ out, \$0, draft of .*No language model was asked/);
  });
});

describe('The line of an event', () => {
  const failed = {
    seq: 7,
    id: 'x',
    type: 'NodeFailed',
    at: '2026-01-01T00:00:00.000Z',
    hash: '',
    data: {
      step: 1,
      node: 'poet',
      attempt: 1,
      kind: 'model_outage',
      retryable: true,
      message: `The server is away. ${'Why? '.repeat(60)}End.`,
      fallbackTo: 'anthropic/other',
    },
  };
  const plain = (_: unknown, text: string): string => text;

  it('names the model that a failed attempt falls back to', () => {
    expect(eventLine(failed, plain, 300)).to.include('anthropic/other');
  });

  it('is whole in a pipe, and cut on a terminal', () => {
    expect(eventLine(failed, plain, null)).to.match(/End\.$/);
    expect(eventLine(failed, plain, 100)).to.have.length.below(100);
  });

  it('says that the price is missing where the tokens are reported, also in the totals of a run', () => {
    const usage = { inputTokens: 5, outputTokens: 7 };
    const of = { ...usage, model: 'openai/gpt-x', costUsd: null };
    const data = { node: 'poet', step: 1, output: { draft: 'x' }, route: { next: [] }, ...of, usage };
    const noPrice = '5 tokens in, 7 out, no price for openai/gpt-x (see PRICES_FILE)';
    expect(eventLine({ ...failed, type: 'NodeCompleted', data }, plain, null)).to.include(`${noPrice}: draft`);
    const totals = { ...usage, costUsd: null, calls: 3, toldCalls: 1, byModel: [of] };
    const end = { finalDraft: 'x', criticScore: null, iterationCount: 1, usage: totals };
    expect(eventLine({ ...failed, type: 'RunCompleted', data: end }, plain, null)).to.include(
      `${noPrice}, 2 calls not reported, draft`,
    );
    const older = { ...data, model: 'gpt-x', costUsd: undefined };
    expect(eventLine({ ...failed, type: 'NodeCompleted', data: older }, plain, null)).to.include('cost not reported');
  });

  it('counts one draft of a run in the singular', () => {
    const end = (iterationCount: number) => ({ finalDraft: 'x', criticScore: 8, iterationCount });
    const lineOf = (count: number) => eventLine({ ...failed, type: 'RunCompleted', data: end(count) }, plain, null);
    expect([1, 2].map((count) => /score 8, (.*), draft/.exec(lineOf(count))?.[1])).to.deep.equal([
      '1 iteration',
      '2 iterations',
    ]);
  });

  it('says that a cost is not reported, and never 0', () => {
    const usage = { inputTokens: null, outputTokens: null, cachedInputTokens: null, reasoningTokens: null };
    const data = { node: 'poet', step: 1, output: { draft: 'x' }, route: { next: [] }, usage, costUsd: null };
    const completed = { ...failed, type: 'NodeCompleted', data };
    expect(eventLine(completed, plain, null))
      .to.include('tokens and cost not reported: draft')
      .and.not.include('$0');
  });
});
