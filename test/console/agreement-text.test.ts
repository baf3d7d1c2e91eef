import { expect } from 'chai';
import { juryAgreementText, rankAgreementText } from '../../src/console/pages/run/deliberation/agreement-text.js';
import { withNames } from '../../src/console/pages/run/deliberation/with-names.js';

describe('The agreement of a rank or jury as text', () => {
  const rank = { kendall_w: null, reviewers: 4, reason: null };
  const jury = { alpha: null, spread: 2, members: 3, reason: null };

  it('has the number and what it is computed from', () => {
    expect(rankAgreementText({ ...rank, kendall_w: 5 / 9 })).to.equal('Agreement: Kendall’s W 0.56, from 4 reviewers.');
    expect(juryAgreementText({ ...jury, alpha: -0.125, spread: 0.5 })).to.equal(
      'Spread 0.5. Agreement over all rounds: Krippendorff’s alpha -0.13.',
    );
  });

  it('says in words why a number is not defined', () => {
    expect(rankAgreementText({ ...rank, reviewers: 1, reason: 'few_reviewers' })).to.equal(
      'Agreement is not defined: it needs the orders of at least 3 reviewers, and 1 reviewer gave one.',
    );
    expect(rankAgreementText({ ...rank, reason: 'few_answers' })).to.include('at least 3 answers');
    expect(rankAgreementText({ ...rank, reason: 'unbalanced' })).to.include('shown to more reviewers than others');
    expect(juryAgreementText({ ...jury, reason: 'one_round' })).to.equal(
      'Spread 2. Krippendorff’s alpha is not defined: it compares rounds, and only one has several scores.',
    );
    expect(juryAgreementText({ ...jury, reason: 'no_variation' })).to.include('all scores are equal');
    expect(juryAgreementText({ ...jury, reason: 'one_rater' })).to.include('only one member');
  });
});

describe('A text of a judge or reviewer for readers', () => {
  const labels = new Map([
    ['A', 'North'],
    ['B', 'East'],
    ['C', 'South & co.'],
  ]);

  it('has the labels of members in place of letters', () => {
    expect(withNames('Response B is short; Responses A, B, and C agree, response C or A do not.', labels)).to.equal(
      'East is short; North, East, and South & co. agree, South & co. or North do not.',
    );
  });

  it('keeps letters that are not those of responses, and unknown ones', () => {
    for (const text of ['Plan B is better than vitamin C.', 'Response D', 'Responses A and D', 'Response Bold']) {
      expect(withNames(text, labels)).to.equal(text);
    }
  });
});
