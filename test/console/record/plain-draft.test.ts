import { expect } from 'chai';
import { draftTree } from '../../../src/draft/draft-tree.js';
import { tokensOf } from '../../../src/draft/markdown.js';
import { plainDraft, withoutMarks } from '../../../src/console/record/plain-draft.js';
import { hostileTexts } from '../../support/hostile-texts.js';

const plain = (draft: string): string => plainDraft(draftTree(tokensOf(draft)));

describe('A draft as plain text', () => {
  it('has one line for each heading, paragraph and item, without Markdown signs', () => {
    const draft =
      '# Oaks\n\nThey grow **slowly**,\nand *long*.\n\n- deep `roots`\n- [shade](https://oaks.example)\n\n2. two';
    expect(plain(draft).split('\n')).to.deep.equal([
      ...['Oaks', '', 'They grow slowly, and long.', ''],
      ...['• deep roots', '• shade (https://oaks.example)', '', '2. two'],
    ]);
  });

  it('has one line for each row, task and footnote', () => {
    const draft = '| a | b |\n|--|--|\n| 1 | 2 |\n\n- [x] done\n- [ ] open\n\nSo[^1]\n\n[^1]: it is.';
    expect(plain(draft).split('\n')).to.deep.equal([
      ...['a | b', '1 | 2', '', '• ☑ done', '• ☐ open', '', 'So[1]', '', '[1] it is.'],
    ]);
  });

  it('keeps code, quotes and other texts', () => {
    expect(plain('```\n# no heading\n```\n\n> said\n\n<b>2 * 3 * 4</b>')).to.equal(
      '# no heading\n\n  said\n\n<b>2 * 3 * 4</b>',
    );
    for (const text of hostileTexts()) expect(() => plain(text)).not.to.throw();
  });
});

describe('An excerpt of a draft', () => {
  it('contains the words without Markdown signs', () => {
    expect(withoutMarks('# Oaks\n\n- They **grow** `slowly`, *very* [here](https://oaks.example)')).to.equal(
      'Oaks\n\nThey grow slowly, very here',
    );
    for (const text of ['snake_case_name', '2 * 3 * 4', 'C# and F#', '1. first', '#hashtag']) {
      expect(withoutMarks(text), text).to.equal(text);
    }
  });

  it('is made in linear time', () => {
    for (const sign of ['[', '*a', '`', '[](', '_ ', '# ', '\n- ', '\t']) {
      const began = process.cpuUsage().user;
      withoutMarks(sign.repeat(400_000));
      expect(process.cpuUsage().user - began, JSON.stringify(sign)).to.be.below(2_000_000);
    }
  });
});
