import { expect } from 'chai';
import { serverEvents } from '../../src/system/server-events.js';
import { BodyTooLarge } from '../../src/system/untrusted.js';
import { rejectionOf } from '../support/rejection.js';

const LOOSE = { isLastComplete: true, maxChars: 1_000 };

async function eventsIn(text: string, options = LOOSE, chunkBytes = 1): Promise<readonly string[]> {
  const bytes = new TextEncoder().encode(text);
  async function* chunks(): AsyncGenerator<Uint8Array> {
    for (let at = 0; at < bytes.length; at += chunkBytes) yield await Promise.resolve(bytes.slice(at, at + chunkBytes));
  }
  const events: string[] = [];
  for await (const event of serverEvents(chunks(), options)) events.push(event);
  return events;
}

describe('Server-sent events', () => {
  it('are read a byte at a time, with either line end, without comments, names and ids', async () => {
    const text = ': hi\n\nid: 7\nevent: x\ndata: Ä\u2028 🌳\ndata:two\r\n\r\ndata: {}\n\n';
    for (const chunkBytes of [1, 1_000]) {
      expect(await eventsIn(text, LOOSE, chunkBytes)).to.deep.equal(['Ä\u2028 🌳\ntwo', '{}']);
    }
  });

  it('without a final empty line count only with isLastComplete', async () => {
    expect(await eventsIn('data: a\n\ndata: b\r\n')).to.deep.equal(['a', 'b']);
    expect(await eventsIn('data: a\n\ndata: b')).to.deep.equal(['a', 'b']);
    expect(await eventsIn('data: a\n\ndata: b', { ...LOOSE, isLastComplete: false })).to.deep.equal(['a']);
  });

  it('are refused if one is too long, in one line or many', async () => {
    const long = 'x'.repeat(900);
    for (const text of [`data: ${long}${long}`, `data: ${long}${long}\n\n`, `data: ${long}\ndata: ${long}\n\n`]) {
      expect(await rejectionOf(eventsIn(text))).to.be.instanceOf(BodyTooLarge);
    }
    expect(await eventsIn(`data: ${long}\n\n`.repeat(3))).to.have.length(3);
  });
});
