import { expect } from 'chai';
import { decide } from '../../../src/run/decide.js';
import { contextOf, given, graphWith } from '../../support/given.js';

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
