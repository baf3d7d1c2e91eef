import { expect } from 'chai';
import { thoughtFilter, withoutThoughts } from '../../src/models/thoughts.js';

const rows: readonly (readonly [title: string, answer: string, spoken: string])[] = [
  ['none', ' A draft.\n', ' A draft.\n'],
  ['thoughts and space before the draft', '\n<think>\nHm <b>.\n</think>\n\nA draft.\n', 'A draft.\n'],
  ['thoughts in capitals', '<THINK>Hm</Think>A draft.', 'A draft.'],
  ['empty thoughts', '<think>\n\n</think>\n\nA draft.', 'A draft.'],
  ['several thoughts in a row', '<think>One</think> <think>Two</think> A draft.', 'A draft.'],
  ['thoughts whose opening tag is missing', 'Hm, well.\n</think>\n\nA draft.', 'A draft.'],
  ['both tags in its text', 'Models write <think> and </think>.', 'Models write <think> and </think>.'],
  ['a closing tag after its thoughts', '<think>Hm</think>End by </think>.', 'End by </think>.'],
  ['another tag', '<notes>aloud</notes>', '<notes>aloud</notes>'],
  ['<thinking>', '<thinking>Hm</thinking>\nA draft.', 'A draft.'],
  ['<thought>', '<thought>Hm</thought>\nA draft.', 'A draft.'],
  ['<reasoning>', '<reasoning>Hm <think></reasoning>A draft.', 'A draft.'],
  ['<seed:think>', '<seed:think>Hm</seed:think>A draft.', 'A draft.'],
  ['the signs of Kimi', '◁think▷Hm◁/think▷A draft.', 'A draft.'],
  [
    'channel marks',
    '<|channel|>analysis<|message|>Hm<|end|><|start|>assistant<|channel|>final<|message|>A draft.',
    'A draft.',
  ],
  ['channel marks without special tokens', 'analysisWe need a draft.assistantfinalA draft.', 'A draft.'],
  ['the word analysis', 'analysis of oaks by assistantfinal', 'analysis of oaks by assistantfinal'],
  ['the word analysis alone', 'Analysis', 'Analysis'],
  ['a final channel alone', '<|channel|>final<|message|>A draft.', 'A draft.'],
  ['an incomplete tag', '<thi', '<thi'],
  ['nothing after its thoughts', '<think>Hm</think>\n', ''],
];

describe('Thoughts of a model', () => {
  for (const [title, answer, spoken] of rows) {
    it(`are removed from an answer with ${title}`, () => {
      expect(withoutThoughts(answer)).to.deep.equal({ text: spoken, endsInThought: false });
    });

    it(`are removed from an answer in pieces with ${title}`, () => {
      for (let size = 1; size <= answer.length; size += 1) {
        let emitted = '';
        const filter = thoughtFilter({ emit: (piece) => (emitted += piece), retract: () => (emitted = '') });
        for (let from = 0; from < answer.length; from += size) filter.push(answer.slice(from, from + size));
        filter.end();
        expect(emitted, `pieces of ${size}`).to.equal(spoken);
      }
    });
  }

  it('without an end leave an empty answer and set endsInThought', () => {
    expect(withoutThoughts('<think>Hm, well')).to.deep.equal({ text: '', endsInThought: true });
  });

  it('are never emitted after their opening tag', () => {
    const emitted: string[] = [];
    const filter = thoughtFilter({ emit: (piece) => emitted.push(piece), retract: () => emitted.push('(taken back)') });
    for (const piece of ['<th', 'ink>Hm', '</thi', 'nk>', '\n', 'A ', 'draft']) filter.push(piece);
    expect(emitted).to.deep.equal(['A ', 'draft']);
  });
});
