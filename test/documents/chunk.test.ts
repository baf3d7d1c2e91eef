import { expect } from 'chai';
import { chunk, CHUNK_UNITS, type Chunk } from '../../src/documents/chunk.js';
import { seededRandom } from '../support/seeded-random.js';
import { IS_SOAK } from '../support/soak.js';

const TEXTS = IS_SOAK ? 5_000 : 200;

const SENTENCE = 'The council reads what it was given and says what it thinks of it. ';

describe('Chunking', () => {
  it('keeps a short page in one chunk and omits an empty page', () => {
    const pages = [
      { page: 1, text: 'One.' },
      { page: 2, text: '' },
      { page: 3, text: 'Three.' },
    ];
    expect(chunk(pages)).to.deep.equal([
      { page: 1, from: 0, to: 4, text: 'One.' },
      { page: 3, from: 0, to: 6, text: 'Three.' },
    ]);
  });

  it('ends a chunk at a paragraph rather than at a sentence', () => {
    const text = `${SENTENCE.repeat(12).trim()}\n\n${SENTENCE.repeat(40).trim()}`;
    const [first] = chunk([{ page: 1, text }]);
    expect(first?.text).to.equal(`${SENTENCE.repeat(12).trim()}\n\n`);
  });

  it('ends and begins chunks at sentences', () => {
    const chunks = chunk([{ page: 1, text: SENTENCE.repeat(60).trim() }]);
    expect(chunks).to.have.length.above(3);
    for (const { text } of chunks) {
      expect(text).to.match(/^The council/);
      expect(text.trimEnd()).to.match(/of it\.$/);
    }
  });

  it('finds sentences in scripts without spaces', () => {
    const [first] = chunk([{ page: 1, text: '委員会は与えられたものを読む。'.repeat(200) }]);
    expect(first?.text).to.match(/む。$/);
  });

  it('does not split emoji families, flags or accented letters in text without spaces', () => {
    for (const character of ['👩‍👩‍👧‍👦', '🇩🇪', 'e\u0301', '𝄞']) {
      for (const { text } of chunk([{ page: 1, text: character.repeat(2_000) }])) {
        expect(text).to.equal(character.repeat(text.length / character.length));
      }
    }
  });

  it('terminates on a text of one grapheme', () => {
    const chunks = chunk([{ page: 1, text: `e${'\u0301'.repeat(20_000)}` }]);
    expect(chunks.at(-1)?.to).to.equal(20_001);
  });

  it('covers every character of any text, in order and within the size limit', () => {
    const random = seededRandom(6);
    for (let round = 0; round < TEXTS; round += 1) {
      const text = anyText(random);
      const chunks = chunk([{ page: 7, text }]);
      expectCover(text, chunks);
      expect(chunk([{ page: 7, text }])).to.deep.equal(chunks);
    }
  });
});

function expectCover(text: string, chunks: readonly Chunk[]): void {
  let [from, to] = [-1, 0];
  for (const each of chunks) {
    expect(each.page).to.equal(7);
    expect(each.text).to.equal(text.slice(each.from, each.to));
    expect(each.text.isWellFormed(), 'well-formed').to.equal(true);
    expect(each.from).to.be.above(from).and.at.most(to);
    expect(each.to).to.be.above(to);
    expect(each.to - each.from).to.be.at.most(CHUNK_UNITS * 1.25);
    [from, to] = [each.from, each.to];
  }
  expect(to).to.equal(text.length);
}

const PIECES = [
  'word ',
  'Sentence. ',
  '\n',
  '\n\n',
  'e\u0301',
  '👩‍👩‍👧',
  '字',
  '。',
  'x'.repeat(700),
  '\u0301',
  '🇩🇪',
  'ק',
  ' ',
  '\t',
];

function anyText(random: () => number): string {
  const few = PIECES.filter(() => random() < 0.5);
  const length = Math.floor(random() * 600);
  return Array.from({ length }, () => few[Math.floor(random() * few.length)] ?? 'a').join('');
}
