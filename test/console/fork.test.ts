import { expect } from 'chai';
import { changesOf, draftOf } from '../../src/console/pages/run/fork-draft.js';
import { history, recordOf } from '../support/console-records.js';

describe('What a fork changes', () => {
  const before = draftOf(recordOf(history('fixed-graph')), 6);

  it('is nothing while all fields say what the moment says', () => {
    expect(changesOf(before, { ...before })).to.equal(undefined);
    expect(changesOf(before, { ...before, feedback: [...before.feedback, ' '] })).to.equal(undefined);
  });

  it('is only what differs, in the names that the service knows', () => {
    const nodes = before.nodes.map((node) =>
      node.id === 'critic_agent' ? { ...node, systemPrompt: 'Be kind.' } : node,
    );
    const after = { ...before, topic: 'The lake', draft: 'Waves', score: '9,5', feedback: ['Go deeper'], nodes };
    expect(changesOf(before, after)).to.deep.equal({
      input_topic: 'The lake',
      modified_state: { current_draft: 'Waves', critic_score: 9.5, feedback_history: ['Go deeper'] },
      nodes: [{ id: 'critic_agent', systemPrompt: 'Be kind.' }],
    });
  });

  it('sends a score that is none as it was typed, for the service to refuse in words', () => {
    expect(changesOf(before, { ...before, score: 'good' })).to.deep.equal({ modified_state: { critic_score: 'good' } });
  });
});
