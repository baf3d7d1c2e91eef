import { expect } from 'chai';
import type { TextDiff } from '../../../src/console/record/text-diff.js';
import { textDiff } from '../../../src/console/record/text-diff.js';
import { hostileTexts } from '../../support/hostile-texts.js';
import { seededRandom } from '../../support/seeded-random.js';

describe('The difference of two drafts', () => {
  it('compares words within a line', () => {
    const { blocks, addedWords, removedWords } = textDiff('Oaks grow slowly here.', 'Oaks grow very fast here.');
    expect(blocks).to.deep.equal([
      [
        { kind: 'same', text: 'Oaks grow ' },
        { kind: 'removed', text: 'slowly' },
        { kind: 'added', text: 'very fast' },
        { kind: 'same', text: ' here.' },
      ],
    ]);
    expect([addedWords, removedWords]).to.deep.equal([2, 1]);
  });

  it('groups pieces by lines, and unchanged lines together', () => {
    const lines = Array.from({ length: 20 }, (_, at) => `Line ${at}`);
    const changed = lines.with(10, 'Line ten');
    const { blocks } = textDiff(lines.join('\n'), changed.join('\n'));
    expect(blocks.map((block) => block.map(({ kind, text }) => [kind, text]))).to.deep.equal([
      [['same', lines.slice(0, 10).join('\n')]],
      [
        ['same', 'Line '],
        ['removed', '10'],
        ['added', 'ten'],
      ],
      [['same', lines.slice(11).join('\n')]],
    ]);
  });

  it('replaces a different line, and compares a rewritten line word by word', () => {
    const before = 'Four hundred bicycles pass the gate.\nIt costs eleven parking places.';
    const after = 'The topic is what the council makes of it.\nIt costs nine parking places.\nIn short';
    const told = textDiff(before, after).blocks.map((block) => block.map(({ kind, text }) => [kind, text]));
    expect(told).to.deep.equal([
      [['removed', 'Four hundred bicycles pass the gate.']],
      [['added', 'The topic is what the council makes of it.']],
      [
        ...[
          ['same', 'It costs '],
          ['removed', 'eleven'],
          ['added', 'nine'],
        ],
        ['same', ' parking places.'],
      ],
      [['added', 'In short']],
    ]);
  });

  it('joins changes across empty lines', () => {
    const told = textDiff('One oak\n\nTwo elms', 'Rain came\n\nSnow fell').blocks;
    expect(told).to.deep.equal([
      [{ kind: 'removed', text: 'One oak\n\nTwo elms' }],
      [{ kind: 'added', text: 'Rain came\n\nSnow fell' }],
    ]);
  });

  it('handles a missing text on either side', () => {
    expect(textDiff(null, 'All new').blocks[0]).to.deep.equal([{ kind: 'added', text: 'All new' }]);
    expect(textDiff('All gone', null).blocks[0]).to.deep.equal([{ kind: 'removed', text: 'All gone' }]);
    expect(textDiff(null, null).blocks).to.deep.equal([]);
    expect(textDiff('Same\n\ntext', 'Same\n\ntext').blocks).to.have.lengthOf(1);
  });

  it('compares letters in scripts without spaces', () => {
    const { blocks } = textDiff('日本語を話す', '日本語で話す');
    expect(blocks[0]?.map(({ text }) => text)).to.deep.equal(['日本語', 'を', 'で', '話す']);
  });

  it('contains both texts completely, for any texts', () => {
    const random = seededRandom(11);
    const words = ['Oak', 'elm', ' ', '  ', '\n', '\n\n', '.', 'naïve', '🌳', '木', "don't", '\t', ...hostileTexts()];
    const text = () => Array.from({ length: 40 }, () => words[Math.floor(random() * words.length)] ?? '').join('');
    for (let round = 0; round < 200; round += 1) {
      const [before, after] = [text(), text()];
      const diff = textDiff(before, after);
      expect(sideOf(diff, 'removed')).to.equal(before);
      expect(sideOf(diff, 'added')).to.equal(after);
    }
  });

  it('pairs rewritten paragraphs across the blank lines between them', () => {
    const before = 'Oaks grow slowly here.\n\nTen elms stand by the river.';
    const after = 'Oaks grow very fast here.\n\nTwo elms stand by the river.';
    const kinds = textDiff(before, after).blocks.map((block) => block.map(({ kind }) => kind).join(' '));
    expect(kinds).to.deep.equal(['same removed added same', 'same', 'removed added same']);
  });

  it('takes less than 3 s of processor time for unlike drafts of 400 KB', () => {
    const random = seededRandom(3);
    const filled = (piece: () => string) => {
      let text = '';
      while (text.length < 400 * 1024) text += piece();
      return text;
    };
    const word = () => Math.floor(random() * 1e9).toString(36);
    const common = () => `w${Math.floor(random() * 300)} `;
    const pieces = [' ', '\n', '.', '. ', '木'].map((separator) => () => word() + separator);
    const lines = [3, 50, 2_000].map((words) => () => `${Array.from({ length: words }, common).join('')}\n`);
    for (const piece of [...pieces, ...lines]) {
      const [before, after] = [filled(piece), filled(piece)];
      const began = process.cpuUsage().user;
      const diff = textDiff(before, after);
      // It takes 0.3 s on a slow machine. Without a limit it would take minutes.
      expect(process.cpuUsage().user - began, before.slice(0, 20)).to.be.below(3_000_000);
      expect([sideOf(diff, 'removed') === before, sideOf(diff, 'added') === after]).to.deep.equal([true, true]);
    }
  });
});

/** The old text ('removed') or the new one ('added'). */
function sideOf({ blocks }: TextDiff, side: 'removed' | 'added'): string {
  const own = blocks.map((block) => block.filter(({ kind }) => kind === 'same' || kind === side));
  const lines = own.filter((block) => block.length > 0);
  return lines.map((block) => block.map(({ text }) => text).join('')).join('\n');
}
