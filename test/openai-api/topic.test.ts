import { expect } from 'chai';
import { unknownModel } from '../../src/openai-api/errors.js';
import { MAX_MATERIAL_BYTES } from '../../src/graph/limits.js';
import type { Conversation, SentMessage } from '../../src/openai-api/topic.js';
import { conversationOf } from '../../src/openai-api/topic.js';
import { piecesOf } from '../../src/openai-api/pieces.js';

describe('The topic of a chat', () => {
  const read = (messages: readonly Omit<SentMessage, 'at'>[], maxBytes = MAX_MATERIAL_BYTES): Conversation =>
    conversationOf(
      messages.map((message, index) => ({ ...message, at: ['messages', index] })),
      { field: 'messages', maxBytes },
    );
  const topicOf = (...messages: readonly Omit<SentMessage, 'at'>[]): string => read(messages).topic;
  const user = (content: SentMessage['content']) => ({ role: 'user', content });

  it('is the text of the only message as it is', () => {
    expect(topicOf(user('  Trees\n'))).to.equal('  Trees\n');
    expect(
      topicOf(
        user([
          { type: 'text', text: 'Tr' },
          { type: 'text', text: 'ees' },
        ]),
      ),
    ).to.equal('Trees');
  });

  it('is the last user message alone; all others are the material, with their roles and calls of tools', () => {
    const { topic, material } = read([
      { role: 'developer', content: 'Be brief.' },
      user('Trees?'),
      { role: 'assistant', content: '', calls: [{ name: 'look', arguments: '{"q":"oaks"}' }] },
      { role: 'tool', content: 'Oaks are old.' },
      { role: 'assistant', content: 'Oaks.' },
      user('Why?'),
      { role: 'system', content: 'In French.' },
    ]);
    expect(topic).to.equal('Why?');
    expect(material.split('\n\n')).to.deep.equal([
      ...['Developer: Be brief.', 'User: Trees?', 'Assistant: [calls look with {"q":"oaks"}]', 'Tool: Oaks are old.'],
      ...['Assistant: Oaks.', 'System: In French.'],
    ]);
    expect(read([user('Trees?')]).material).to.equal('');
  });

  it('is the beginning of a longer message, up to the end of a sentence; the material has the whole message', () => {
    expect(read([user('🌳'.repeat(10_000))])).to.include({ topic: '🌳'.repeat(10_000), material: '' });
    const long = `${'Why trees? '.repeat(1_000)}The end.`;
    const { topic, material } = read([{ role: 'system', content: 'Be brief.' }, user(long)]);
    expect([...topic].length).to.be.within(9_900, 10_000);
    expect(long.startsWith(topic) && topic.endsWith('?')).to.equal(true);
    expect(material).to.equal(`System: Be brief.\n\nUser: ${long}`);
  });

  it('is refused only if the material is too large', () => {
    expect(() => read([{ role: 'system', content: 'é'.repeat(50) }, user('Trees?')], 108)).not.to.throw();
    expect(() => read([{ role: 'system', content: 'é'.repeat(50) }, user('Trees?')], 107)).to.throw('108 bytes');
  });

  it('is refused with an error that names what is wrong and quotes at most 100 characters', () => {
    for (const text of [null, 5, undefined])
      expect(() => topicOf(user([{ type: 'text', text }]))).to.throw('The text of the part should be a string');
    const long = 'x'.repeat(100_000);
    const shown = /^.{0,50}"x{99}….{0,60}$/;
    expect(() => topicOf(user([{ type: long }]))).to.throw(shown);
    expect(() => topicOf({ role: long, content: 'Trees' })).to.throw(shown);
    expect(unknownModel(long).message).to.match(shown);
  });
});

describe('The pieces of a final draft', () => {
  it('have 256 code points, the last one perhaps fewer', () => {
    expect(piecesOf('')).to.deep.equal([]);
    expect(piecesOf('🌳'.repeat(256))).to.deep.equal(['🌳'.repeat(256)]);
    expect(piecesOf(`${'🌳'.repeat(256)}x`)).to.deep.equal(['🌳'.repeat(256), 'x']);
  });
});
