import { expect } from 'chai';
import { jsonBytes, maxNodeExecutions } from '../../src/graph/limits.js';
import { seededRandom } from '../support/seeded-random.js';

describe('jsonBytes', () => {
  for (const text of [
    '',
    'plain',
    'a"b\\c',
    '\b\t\n\f\r',
    '\u0000\u001f\u007f',
    'é',
    '中',
    '😀',
    '\ud800',
    '\udc00x',
    'x\ud83d',
    '\u2028',
  ]) {
    it(`counts ${JSON.stringify(text)} as JSON.stringify writes it`, () => {
      expect(jsonBytes(text)).to.equal(Buffer.byteLength(JSON.stringify(text)));
    });
  }

  it('counts random texts of any code units as JSON.stringify writes them', () => {
    const random = seededRandom(7);
    for (let round = 0; round < 500; round += 1) {
      const ceiling = [0x80, 0x800, 0x10000][round % 3] ?? 0x80;
      const units = Array.from({ length: 40 }, () => Math.floor(random() * ceiling));
      const surrogates = Array.from({ length: 10 }, () => 0xd800 + Math.floor(random() * 0x800));
      const text = String.fromCharCode(...units, ...surrogates);
      expect(jsonBytes(text)).to.equal(Buffer.byteLength(JSON.stringify(text)));
    }
  });
});

describe('maxNodeExecutions', () => {
  it('is 50 for small graphs and three a node for large ones', () => {
    expect([0, 3, 16, 17, 200].map(maxNodeExecutions)).to.deep.equal([50, 50, 50, 51, 600]);
  });
});
