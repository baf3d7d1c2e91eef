import { expect } from 'chai';
import { plainDraft } from '../../../src/console/record/plain-draft.js';
import { hostileTexts } from '../../support/hostile-texts.js';

describe('The plain words of a draft', () => {
  it('are a line for each heading, paragraph and item, without the signs of Markdown', () => {
    const draft =
      '# Oaks\n\nThey grow **slowly**,\nand *long*.\n\n- deep `roots`\n- [shade](https://oaks.example)\n\n2. two';
    expect(plainDraft(draft).split('\n')).to.deep.equal([
      ...[
        'Oaks',
        '',
        'They grow slowly, and long.',
        '',
        '• deep roots',
        '• shade (https://oaks.example)',
        '',
        '2. two',
      ],
    ]);
  });

  it('keep code, quotes, and whatever is no Markdown as it is', () => {
    expect(plainDraft('```\n# no heading\n```\n\n> said\n\n<b>2 * 3 * 4</b>')).to.equal(
      '# no heading\n\n  said\n\n<b>2 * 3 * 4</b>',
    );
    for (const text of hostileTexts()) expect(() => plainDraft(text)).not.to.throw();
  });
});
