import { expect } from 'chai';
import { createHash } from 'node:crypto';
import {
  indexOfLetter,
  letterAt,
  maskNames,
  namesToMask,
  orderShown,
} from '../../../src/council/deliberation/anonymity.js';

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

const READER = { runId: '8c1f6a52-0000-4000-8000-000000000001', step: 5, reviewer: 'm2' };
const MEMBERS = ['m1', 'm2', 'm3', 'm4', 'm5'];

describe('orderShown', () => {
  it('sorts members by the SHA-256 of run, step, reader and member, each on a line', () => {
    const shown = orderShown(READER, MEMBERS, sha256);
    const hashes = shown.map((member) => sha256(`${READER.runId}\n5\nm2\n${member}`));
    expect(hashes).to.deep.equal(hashes.toSorted());
    expect(shown.toSorted()).to.deep.equal(MEMBERS);
  });

  it('does not depend on the order given, but on the run, the step and the reader', () => {
    const shown = orderShown(READER, MEMBERS, sha256);
    expect(orderShown(READER, MEMBERS.toReversed(), sha256)).to.deep.equal(shown);
    const others = [
      ...Array.from({ length: 4 }, (_, index) => ({ ...READER, step: 6 + index })),
      ...['m1', 'chair', 'm3', 'm4'].map((reviewer) => ({ ...READER, reviewer })),
      ...['a', 'b', 'c', 'd'].map((runId) => ({ ...READER, runId })),
    ].map((reader) => orderShown(reader, MEMBERS, sha256).join());
    expect(new Set(others.slice(0, 4)).size).to.be.above(1);
    expect(new Set(others.slice(4, 8)).size).to.be.above(1);
    expect(new Set(others.slice(8)).size).to.be.above(1);
  });
});

describe('letterAt', () => {
  it('names the first eight answers A to H, and finds their places again', () => {
    const letters = Array.from({ length: 8 }, (_, index) => letterAt(index));
    expect(letters.join('')).to.equal('ABCDEFGH');
    expect(letters.map(indexOfLetter)).to.deep.equal([0, 1, 2, 3, 4, 5, 6, 7]);
  });
});

const MODELS = [
  'openai/gpt-5.1-mini',
  'openrouter/anthropic/claude-sonnet-4',
  'offline/offline-1',
  'gemini/gemini-2.5-pro',
];

describe('namesToMask', () => {
  it('holds full names, providers, models, last parts and families, the longest first', () => {
    expect(namesToMask(['openrouter/anthropic/claude-sonnet-4', 'openai/gpt-5'])).to.deep.equal([
      'openrouter/anthropic/claude-sonnet-4',
      'anthropic/claude-sonnet-4',
      'claude-sonnet-4',
      'openai/gpt-5',
      'openrouter',
      'chatgpt',
      'claude',
      'openai',
      'gpt-5',
      'gpt',
    ]);
  });

  it('holds each name once, whatever the case and order of models', () => {
    const names = namesToMask(MODELS);
    expect(new Set(names).size).to.equal(names.length);
    expect(namesToMask([...MODELS.toReversed(), 'OpenAI/GPT-5.1-Mini'])).to.deep.equal(names);
  });

  it('holds no family that no model is of, and nothing for no model', () => {
    expect(namesToMask(['offline/offline-1'])).to.deep.equal(['offline/offline-1', 'offline-1', 'offline']);
    expect(namesToMask([])).to.deep.equal([]);
  });
});

describe('maskNames', () => {
  const names = namesToMask(MODELS);
  for (const [given, expected] of [
    ['As GPT, I would plant oaks.', 'As [model], I would plant oaks.'],
    ['As GPT-5.1-mini I agree.', 'As [model] I agree.'],
    ['I am ChatGPT (gpt-4o), by OpenAI.', 'I am [model] ([model]), by [model].'],
    ['Claude Sonnet 4 and CLAUDE 3', '[model] and [model] 3'],
    ['claude-sonnet-4, claude_sonnet_4 and Claude.Sonnet.4', '[model], [model] and [model]'],
    ['(offline/offline-1) Offline-1', '([model]) [model]'],
    ['Gemini’s answer, "gemini"; gemini2', '[model]’s answer, "[model]"; [model]'],
    ['Gemini. Then', '[model]. Then'],
    ['作为GPT，我认为。저는 GPT입니다', '作为[model]，我认为。저는 [model]입니다'],
  ] as const) {
    it(`replaces names in ${JSON.stringify(given)}`, () => expect(maskNames(given, names).text).to.equal(expected));
  }

  for (const text of [
    'Offlines, geminis, éclaude, claudé, gptx, gpt_x, xgpt and claudetta are words of their own.',
    'Llama and Mistral are animals or winds: no member is of them.',
    'The mark [model] stays.',
    '',
  ]) {
    it(`keeps ${JSON.stringify(text)}`, () => expect(maskNames(text, names)).to.deep.equal({ text, masked: [] }));
  }

  it('returns the names found, each once, in the order given', () => {
    expect(maskNames('gpt, Claude, GPT-5, OFFLINE, claude', names).masked).to.deep.equal(['offline', 'claude', 'gpt']);
  });

  it('takes signs of patterns in names as they are', () => {
    const odd = namesToMask(['local/a+b(c)[d].*\\e$^|{2}', 'local/日本']);
    expect(maskNames('x a+b(c)[d].*\\e$^|{2} y 日本 aab', odd).text).to.equal('x [model] y [model] aab');
  });

  it('finds nothing more in a masked text', () => {
    const { text } = maskNames(`${MODELS.join(' ')} GPT-5.1 Claude Gemini-x.y offline`, names);
    expect(maskNames(text, names)).to.deep.equal({ text, masked: [] });
  });

  // A pattern with a quadratic time would need many minutes.
  for (const piece of ['gpt-', 'gpt-5_', 'claude-sonnet-', 'x', '-.', 'gpt5.', '日', '\u0301', 'offline/', 'openai ']) {
    it(`masks a text of 2 MiB of ${JSON.stringify(piece)} in linear time`, () => {
      const text = piece.repeat((2 * 1024 * 1024) / piece.length);
      expect(maskNames(maskNames(text, names).text, names).masked).to.deep.equal([]);
    });
  }
});
