import { expect } from 'chai';
import { recordedName } from '../../src/graph/models-asked.js';

/** The only provider that is configured reads every name as one of its own. */
const fullName = (model = 'default'): string => `openrouter/${model}`;

describe('The name of a model in the graph of a run', () => {
  it('means the provider that stands in it, although that one is not configured', () => {
    for (const name of ['corp/model', 'openai/gpt-5.4', 'local-2/qwen3:8b', 'openrouter/openai/gpt-5.4'])
      expect(recordedName(name, fullName)).to.equal(name);
  });

  it('means the default provider in runs of earlier versions, if no provider can stand in it', () => {
    expect(recordedName(undefined, fullName)).to.equal('openrouter/default');
    for (const name of ['gpt-5.4', 'Qwen/Qwen3-32B', '@cf/meta/llama-3', 'corp/', '/model'])
      expect(recordedName(name, fullName)).to.equal(`openrouter/${name}`);
  });
});
