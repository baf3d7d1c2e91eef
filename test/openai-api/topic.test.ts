import { expect } from 'chai';
import { unknownModel } from '../../src/openai-api/errors.js';
import type { SentMessage } from '../../src/openai-api/topic.js';
import { conversationOf } from '../../src/openai-api/topic.js';
import { piecesOf } from '../../src/openai-api/pieces.js';

describe('The topic of a chat', () => {
  const topicOf = (...messages: readonly Omit<SentMessage, 'at'>[]): string =>
    conversationOf(
      messages.map((message, index) => ({ ...message, at: ['messages', index] })),
      'messages',
    ).topic;
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

  it('is the last user message after a transcript of all others', () => {
    const messages = [
      { role: 'developer', content: 'Be brief.' },
      user('Trees?'),
      { role: 'assistant', content: 'Oaks.' },
      user('Why?'),
      { role: 'system', content: 'In French.' },
    ];
    const transcript = 'Developer: Be brief.\n\nUser: Trees?\n\nAssistant: Oaks.\n\nSystem: In French.\n\nUser: Why?';
    expect(topicOf(...messages)).to.equal(transcript);
  });

  it('counts code points, with the roles: at most 10,000', () => {
    expect([...topicOf(user('🌳'.repeat(10_000)))]).to.have.lengthOf(10_000);
    expect(() => topicOf(user('🌳'.repeat(10_001)))).to.throw('10001 characters');
    expect(() => topicOf({ role: 'system', content: 'x' }, user('x'.repeat(10_000)))).to.throw('10017 characters');
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
