import { expect } from 'chai';
import type { CouncilBench } from '../support/council-command.js';
import { councilBench } from '../support/council-command.js';

describe('council run of a blueprint with models that are not configured', () => {
  let bench: CouncilBench;

  beforeEach(() => {
    bench = councilBench();
  });
  afterEach(() => bench.clear());

  it('prints each warning of a save once', async () => {
    const nodes = [
      { id: 'a', model: 'anthropic/claude-x', keep: 2 },
      { id: 'b', fallbacks: ['mistral'] },
    ];
    const edges = [{ source: 'a', target: 'b' }];
    const file = bench.written('council.json', JSON.stringify({ name: 'Far', nodes, edges, fallbacks: ['groq'] }));
    const ended = await bench.run(['Trees', '--blueprint', file]);
    expect(ended.code, ended.stderr).to.equal(0);
    const warnings = ended.stderr.split('\n').filter((line) => line.startsWith('Warning: '));
    const named = warnings.map((line) => /^Warning: ([^:]+): (.*)$/.exec(line));
    expect(named.map((match) => match?.[1]).toSorted()).to.deep.equal([
      ...['fallbacks[0]', 'nodes[0].keep', 'nodes[0].model', 'nodes[1].fallbacks[0]'],
    ]);
    expect(warnings.join('\n')).to.match(/No provider named "anthropic" is configured: runs send model .* to provider/);
  });
});
