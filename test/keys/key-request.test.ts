import { expect } from 'chai';
import { KeyRefused } from '../../src/keys/errors.js';
import { expiryAt, expiryIn, scopesOf } from '../../src/keys/key-request.js';

const NOW = '2026-01-01T00:00:00.000Z';

describe('The request for a key', () => {
  for (const [text, expiry] of [
    ['45s', '2026-01-01T00:00:45.000Z'],
    ['90m', '2026-01-01T01:30:00.000Z'],
    ['12h', '2026-01-01T12:00:00.000Z'],
    ['30d', '2026-01-31T00:00:00.000Z'],
  ] as const) {
    it(`accepts the duration ${text}`, () => expect(expiryIn(text, NOW)).to.equal(expiry));
  }

  for (const text of ['', '30', 'd', '0d', '-1d', '1.5h', '30 d', '1w', '36526d', '9999999999d', '1e3s']) {
    it(`refuses the duration ${JSON.stringify(text)}`, () => expect(() => expiryIn(text, NOW)).to.throw(KeyRefused));
  }

  it('converts a time of expiry with any offset to UTC', () => {
    expect(expiryAt('2030-06-01T12:00:00+02:00')).to.equal('2030-06-01T10:00:00.000Z');
    expect(expiryAt('2030-06-01T10:00Z')).to.equal('2030-06-01T10:00:00.000Z');
  });

  for (const text of [
    '2030-06-01',
    '2030-06-01T12:00:00',
    '2030-13-01T12:00:00Z',
    '2030-02-30T12:00:00+02:00',
    'tomorrow',
    '1',
  ]) {
    it(`refuses the time ${JSON.stringify(text)}`, () => expect(() => expiryAt(text)).to.throw(KeyRefused));
  }

  it('removes repeated scopes and refuses unknown ones', () => {
    expect(scopesOf(['run', 'read', 'run'])).to.deep.equal(['read', 'run']);
    expect(() => scopesOf(['read', 'write'])).to.throw(KeyRefused, 'write');
  });
});
