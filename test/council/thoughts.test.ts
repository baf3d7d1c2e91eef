import { expect } from 'chai';
import { thoughtFilter, withoutThoughts } from '../../src/council/thoughts.js';

const rows: readonly (readonly [title: string, answer: string, spoken: string])[] = [
  ['a draft without any', ' A draft.\n', ' A draft.\n'],
  ['thoughts at its head, and the space behind them', '\n<think>\nHm <b>.\n</think>\n\nA draft.\n', 'A draft.\n'],
  ['thoughts in capitals', '<THINK>Hm</Think>A draft.', 'A draft.'],
  ['empty thoughts', '<think>\n\n</think>\n\nA draft.', 'A draft.'],
  ['several thoughts in a row', '<think>One</think> <think>Two</think> A draft.', 'A draft.'],
  ['thoughts whose opening tag is missing', 'Hm, well.\n</think>\n\nA draft.', 'A draft.'],
  [
    'nothing of a draft that only speaks of the tags',
    'Models write <think> and </think>.',
    'Models write <think> and </think>.',
  ],
  ['nothing of what stands behind the thoughts', '<think>Hm</think>End by </think>.', 'End by </think>.'],
  ['nothing of another tag', '<thinking>aloud</thinking>', '<thinking>aloud</thinking>'],
  ['nothing of what could have become a tag', '<thi', '<thi'],
  ['all of an answer that ends behind them', '<think>Hm</think>\n', ''],
];

describe('Thoughts of a model', () => {
  for (const [title, answer, spoken] of rows) {
    it(`leave ${title}`, () => {
      expect(withoutThoughts(answer)).to.deep.equal({ text: spoken, endsInThought: false });
    });

    it(`leave ${title}, however it comes in pieces`, () => {
      for (let size = 1; size <= answer.length; size += 1) {
        let told = '';
        const filter = thoughtFilter({ emit: (piece) => (told += piece), retract: () => (told = '') });
        for (let from = 0; from < answer.length; from += size) filter.push(answer.slice(from, from + size));
        filter.end();
        expect(told, `pieces of ${size}`).to.equal(spoken);
      }
    });
  }

  it('that never end leave nothing, and it is known', () => {
    expect(withoutThoughts('<think>Hm, well')).to.deep.equal({ text: '', endsInThought: true });
  });

  it('are not told by a piece, once it is known that they are thoughts', () => {
    const told: string[] = [];
    const filter = thoughtFilter({ emit: (piece) => told.push(piece), retract: () => told.push('(taken back)') });
    for (const piece of ['<th', 'ink>Hm', '</thi', 'nk>', '\n', 'A ', 'draft']) filter.push(piece);
    expect(told).to.deep.equal(['A ', 'draft']);
  });
});
