import { expect } from 'chai';
import { excerptsOf } from '../../src/projections/excerpts.js';
import { hostileTexts } from '../support/hostile-texts.js';
import { summaryWith } from '../support/run-summaries.js';

/** The excerpts of a run as texts, with found words in brackets. */
function marked(q: string, inputTopic: string, finalDraft: string | null = null): readonly string[] {
  const excerpts = excerptsOf(summaryWith('one', { inputTopic, finalDraft }), q);
  return excerpts.map(({ of, parts }) =>
    [`${of}: `, ...parts.map(({ text, found }) => (found ? `[${text}]` : text))].join(''),
  );
}

describe('The excerpts of a found run', () => {
  it('mark the words as the search compares them', () => {
    expect(marked('STRASSE trees', 'A Straße of trees')).to.deep.equal(['input_topic: A [Straße] of [trees]']);
    expect(marked('riv* sea', 'Rivers, a river, Drive')).to.deep.equal(['input_topic: [Rivers], a [river], Drive']);
    expect(marked('京', '東京の木')).to.deep.equal(['input_topic: [東京の木]']);
    expect(marked('sea', 'Trees')).to.deep.equal([]);
  });

  it('show the surroundings of the first word in one line, of the topic and of the draft', () => {
    const [topic, draft] = marked(
      'sea',
      'The sea',
      `${'word '.repeat(100)}\n\nthe sea\nis deep ${'more '.repeat(100)}sea`,
    );
    expect(topic).to.equal('input_topic: The [sea]');
    expect(draft).to.match(/^final_draft: (ord |word )+the \[sea\] is deep (more )+m?o?r?e?$/);
    expect(draft?.length).to.be.within(150, 250);
  });

  it('are made of hostile texts without an error and without half a character', () => {
    const texts = [...hostileTexts(), `${'😀'.repeat(80)} sea ${'😀'.repeat(80)}`];
    for (const text of texts.filter((each) => each.isWellFormed())) {
      for (const excerpt of marked(`sea ${text}`, `${text} sea ${text}`)) expect(excerpt.isWellFormed()).to.equal(true);
    }
  });
});
