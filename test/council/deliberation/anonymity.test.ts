import { expect } from 'chai';
import { createHash } from 'node:crypto';
import { indexOfLetter, letterAt, orderShown, withoutAuthor } from '../../../src/council/deliberation/anonymity.js';

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

describe('withoutAuthor', () => {
  const KIM = { member: 'm1', label: 'Kind Kim', model: 'openai/gpt-5.1-mini' };
  const CLAUDE = { member: 'second', label: 'second', model: 'openrouter/anthropic/claude-sonnet-4' };
  const SOLAR = { member: 'm3', label: 'Sun', model: 'ollama/solar' };

  for (const [author, given, expected] of [
    [KIM, 'As Kind Kim, I would plant oaks.', 'As [model], I would plant oaks.'],
    [KIM, 'as GPT-5.1-mini I agree', 'as [model] I agree'],
    [KIM, 'As a start: speaking as “kind kim”, I agree.', 'As a start: speaking as “[model]”, I agree.'],
    [KIM, 'I am GPT (gpt-4o), by OpenAI. I’m **Kind Kim**.', 'I am [model] (gpt-4o), by OpenAI. I’m **[model]**.'],
    [KIM, 'I am openai/gpt-5.1-mini\nand I agree.', 'I am [model]\nand I agree.'],
    [KIM, 'I am Kind Kim and I agree. I am m1!', 'I am [model] and I agree. I am [model]!'],
    [KIM, 'Kind Kim here: plant oaks. OpenAI here, too.', '[model] here: plant oaks. [model] here, too.'],
    [KIM, 'Known as Kind  Kim, also known as gpt 5.1 mini.', 'Known as [model], also known as [model].'],
    [KIM, '## Kind Kim\n\nPlant oaks.', '## [model]\n\nPlant oaks.'],
    [KIM, 'Hello\n### **GPT-5**: ##\nText', 'Hello\n### **[model]**: ##\nText'],
    [KIM, '**Kind Kim:**\nText', '**[model]:**\nText'],
    [KIM, 'Kind Kim\n--------\nText', '[model]\n--------\nText'],
    [KIM, 'Plant oaks.\n\n— Kind Kim.\n', 'Plant oaks.\n\n— [model].\n'],
    [KIM, 'Kind Kim', '[model]'],
    [CLAUDE, 'I am Claude, made by Anthropic.', 'I am [model], made by Anthropic.'],
    [CLAUDE, 'As Claude Sonnet 4, I agree. I am the second.', 'As [model], I agree. I am the [model].'],
    [SOLAR, 'I am solar. Sun here!', 'I am [model]. [model] here!'],
  ] as const) {
    it(`hides the author in ${JSON.stringify(given)}`, () => {
      expect(withoutAuthor(given, author, []).text).to.equal(expected);
    });
  }

  for (const [author, text] of [
    [KIM, 'OpenAI charges 10 dollars, Anthropic 15; GPT-5.1-mini is cheap, says Kind Kim.'],
    [KIM, 'As Claude, I agree. I am Anthropic. Google here.'],
    [KIM, 'I am Kind Kimberley. As Kind Kim said, I agree. I am Kind Kim’s friend. I am GPT-5.2.'],
    [KIM, '## Kind Kim and others\nKind Kim\nText'],
    [SOLAR, 'I am solar powered. Known as solar power. Renewables such as solar, I think, win. Solar here is cheap.'],
    [SOLAR, 'The solar economy\n\n- Solar\n- Wind'],
    [{ ...SOLAR, model: null }, 'I am solar.'],
    [{ ...SOLAR, model: 'openai/o3' }, 'As o, I agree. I am o.'],
    [KIM, 'The mark [model] stays.'],
    [KIM, ''],
  ] as const) {
    it(`keeps ${JSON.stringify(text)}`, () => {
      expect(withoutAuthor(text, author, [])).to.deep.equal({ text, masked: [] });
    });
  }

  it('keeps a name that stands in the topic or in another answer', () => {
    const text = 'As OpenAI, I am Kind Kim. I am m1.';
    expect(withoutAuthor(text, KIM, ['Buy from OpenAI?', 'Kind-Kim is right.', 'am10']).text).to.equal(
      'As OpenAI, I am Kind Kim. I am [model].',
    );
    expect(withoutAuthor(text, KIM, ['OpenAIs', 'Kind, Kimberley']).text).to.equal(
      'As [model], I am [model]. I am [model].',
    );
  });

  it('returns the names that it hides, each once, in lower case', () => {
    const { masked } = withoutAuthor('I am KIND KIM. I am Kind-Kim. As GPT, I agree with OpenAI.', KIM, []);
    expect(masked).to.have.members(['kind kim', 'gpt']);
  });

  it('takes signs of patterns in names as they are', () => {
    const odd = { member: '$^|{2}*a', label: 'a+b(c)[d].*\\e', model: 'local/日本' };
    expect(withoutAuthor('I am a+b(c)[d].*\\e! I am 日本. I am $^|{2}*a, aab', odd, []).text).to.equal(
      'I am [model]! I am [model]. I am [model], aab',
    );
  });

  // A pattern with a quadratic time would need many minutes.
  for (const piece of [
    'as ',
    'I am ',
    'known as ',
    '# ',
    '**',
    ' ',
    '\n',
    'kind ',
    'kim here ',
    'I am gpt-',
    'kim \n',
    '— ',
  ]) {
    it(`reads 2 MiB of ${JSON.stringify(piece)} in linear time`, () => {
      const text = piece.repeat((2 * 1024 * 1024) / piece.length);
      expect(withoutAuthor(text, KIM, [text]).text).to.have.lengthOf.at.most(text.length + 100);
    });
  }
});
