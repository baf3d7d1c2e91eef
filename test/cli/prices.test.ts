import { expect } from 'chai';
import type { CouncilBench } from '../support/council-command.js';
import { councilBench } from '../support/council-command.js';

describe('council prices', () => {
  let bench: CouncilBench;

  beforeEach(() => {
    bench = councilBench();
  });
  afterEach(() => bench.clear());

  /** The cells of the line of a model. */
  const cellsOf = (stdout: string, model: string): readonly string[] => {
    const line = stdout.split('\n').find((each) => each.startsWith(`${model} `));
    return line?.split(/ {2,}/) ?? [];
  };

  it('lists every priced model, in dollars per million tokens, with the date and source of its price', async () => {
    const { code, stdout, stderr } = await bench.council(['prices']);
    expect([code, stderr]).to.deep.equal([0, '']);
    expect(cellsOf(stdout, 'anthropic/claude-haiku-4-5')).to.deep.equal([
      ...['anthropic/claude-haiku-4-5', '1', '5', '0.1', '1.25'],
      'shipped table: price file of LiteLLM, read on 2026-08-01',
    ]);
    expect(cellsOf(stdout, 'deepseek/deepseek-v4-flash')).to.include('0.0028');
    expect(cellsOf(stdout, 'offline/offline-1')).to.deep.equal([
      ...['offline/offline-1', '0', '0', '0', '0', 'part of the service'],
    ]);
    expect(stdout.split('\n').length).to.be.above(60);
  });

  it('lists prices of PRICES_FILE before shipped ones, and charges cached tokens as others if they have no price', async () => {
    const own = {
      'openai/gpt-5.4': { input_cost_per_token: 7e-6, output_cost_per_token: 8e-6 },
      'house-model': { input_cost_per_token: 1e-7, output_cost_per_token: 0, read_at: '2026-11-02', source: 'a bill' },
    };
    const env = { PRICES_FILE: bench.written('prices.json', JSON.stringify(own)) };
    const { code, stdout } = await bench.council(['prices'], { env });
    expect(code).to.equal(0);
    expect(cellsOf(stdout, 'openai/gpt-5.4')).to.deep.equal(['openai/gpt-5.4', '7', '8', '7', '7', 'PRICES_FILE']);
    expect(cellsOf(stdout, 'house-model').slice(1)).to.deep.equal([
      ...['0.1', '0', '0.1', '0.1', 'PRICES_FILE: a bill, read on 2026-11-02'],
    ]);
  });

  it('lists the default model of each configured provider, also if it has no price', async () => {
    const env = { OLLAMA_BASE_URL: 'http://localhost:11434', OLLAMA_MODEL: 'llama3.2' };
    const { code, stdout } = await bench.council(['prices'], { env });
    expect(code).to.equal(0);
    expect(cellsOf(stdout, 'ollama/llama3.2')[1]).to.equal('no price');
  });

  it('finds models by their full names and as a node names them, and exits 1 if one has no price', async () => {
    const env = { OPENAI_API_KEY: 'sk-canary', OPENAI_MODEL: 'gpt-5.4' };
    const known = await bench.council(['prices', 'openai', 'o3', 'anthropic/claude-haiku-4-5'], { env });
    expect(known.code, known.stdout).to.equal(0);
    const models = known.stdout.split('\n').slice(2, -1);
    expect(models.map((line) => line.split(' ')[0])).to.deep.equal([
      'openai/gpt-5.4',
      'openai/o3',
      'anthropic/claude-haiku-4-5',
    ]);
    const unknown = await bench.council(['prices', 'o3', 'gpt-of-tomorrow'], { env });
    expect(unknown.code).to.equal(1);
    expect(cellsOf(unknown.stdout, 'openai/gpt-of-tomorrow')[1]).to.equal('no price');
    expect(unknown.stdout + known.stdout).to.not.include('canary');
  });

  it('says as what a name is asked, and exits 1 for a name of a provider that is not configured', async () => {
    const offline = await bench.council(['prices', 'gpt-of-tomorrow', 'nowhere/gpt', 'anthropic/of-tomorrow']);
    expect(offline.code).to.equal(1);
    expect(offline.stdout).to.include('default provider offline');
    expect(offline.stderr).to.equal('"gpt-of-tomorrow" is asked as offline/gpt-of-tomorrow\n');
    expect(cellsOf(offline.stdout, 'offline/gpt-of-tomorrow')[1]).to.equal('0');
    expect(cellsOf(offline.stdout, 'nowhere/gpt')).to.deep.equal(['nowhere/gpt', 'no provider named "nowhere"']);
    expect(cellsOf(offline.stdout, 'anthropic/of-tomorrow')[1]).to.equal('no provider named "anthropic"');
    const env = { OPENROUTER_API_KEY: 'sk-canary' };
    const prices = { 'openrouter/far/model': { input_cost_per_token: 1e-6, output_cost_per_token: 1e-6 } };
    const routed = await bench.council(['prices', 'far/model'], {
      env: { ...env, PRICES_FILE: bench.written('prices.json', JSON.stringify(prices)) },
    });
    expect(routed).to.include({ code: 0, stderr: '"far/model" is asked as openrouter/far/model\n' });
    expect(routed.stdout).to.include('default provider openrouter');
  });

  it('prints the hash of the table that a run records', async () => {
    const hashIn = ({ stdout }: { readonly stdout: string }): string | undefined =>
      /pricesHash ([0-9a-f]{64})/.exec(stdout)?.[1];
    const recorded = await bench.council(['run', 'Oaks', '--json']);
    const { run_id: runId } = JSON.parse(recorded.stdout) as { readonly run_id: string };
    const events = await bench.council(['export', runId]);
    expect(events.stdout).to.include(`"pricesHash":"${hashIn(await bench.council(['prices'])) ?? ''}"`);
  });

  it('exits 2 with one line for a PRICES_FILE that cannot be used', async () => {
    const { code, stdout, stderr } = await bench.council(['prices'], { env: { PRICES_FILE: '/no/such/file' } });
    expect([code, stdout]).to.deep.equal([2, '']);
    expect(stderr).to.include('PRICES_FILE').and.include('/no/such/file');
    expect(stderr.trimEnd().split('\n')).to.have.lengthOf(1);
  });
});
