import { expect } from 'chai';
import { ModelLabels } from '../../src/telemetry/counts.js';

describe('Labels of models', () => {
  it('name a model once it has answered, without its provider', () => {
    const labels = new ModelLabels(['gemini', 'openrouter']);
    expect(labels.of('openrouter/meta/llama')).to.deep.equal(['openrouter', 'other']);
    expect(labels.onAnswered('openrouter/meta/llama')).to.deep.equal(['openrouter', 'meta/llama']);
    expect(labels.of('openrouter/meta/llama')).to.deep.equal(['openrouter', 'meta/llama']);
  });

  it('give a model without a known provider to the default one', () => {
    expect(new ModelLabels(['gemini']).onAnswered('meta/llama')).to.deep.equal(['gemini', 'meta/llama']);
  });

  it('name at most 100 models', () => {
    const labels = new ModelLabels(['gemini']);
    const named = Array.from({ length: 150 }, (_, index) => labels.onAnswered(`gemini/m${index}`));
    expect(named.filter(([, model]) => model !== 'other')).to.have.lengthOf(100);
    expect(labels.of('gemini/m99')).to.deep.equal(['gemini', 'm99']);
    expect(labels.of('gemini/m100')).to.deep.equal(['gemini', 'other']);
  });

  it('name no model whose name is so long that the metrics would become large', () => {
    const labels = new ModelLabels(['gemini']);
    expect(labels.onAnswered(`gemini/${'m'.repeat(200)}`)[1]).to.have.lengthOf(200);
    expect(labels.onAnswered(`gemini/${'m'.repeat(201)}`)).to.deep.equal(['gemini', 'other']);
    expect(labels.own()).to.have.lengthOf(1);
  });
});
