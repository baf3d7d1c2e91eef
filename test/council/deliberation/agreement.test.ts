import { expect } from 'chai';
import {
  aggregateScore,
  concordance,
  juryAgreement,
  memberPoints,
  rankAgreement,
  type ReviewerRanking,
} from '../../../src/council/deliberation/agreement.js';

/** Rankings of reviewers r1, r2 and so on, each a text of answers, best first. */
function rankings(...texts: readonly string[]): readonly ReviewerRanking[] {
  return texts.map((text, index) => ({ reviewer: `r${index + 1}`, ranking: text.split('') }));
}

/** All orders of the signs of a text. */
function ordersOf(text: string): readonly string[] {
  if (text.length < 2) return [text];
  return text
    .split('')
    .flatMap((first, index) => ordersOf(text.slice(0, index) + text.slice(index + 1)).map((rest) => first + rest));
}

const NONE = null;

describe('concordance', () => {
  it("gives Kendall's W of six applicants ranked by three executives (Siegel 1956, Table 9.8: 0.16)", () => {
    const ranks = [
      [1, 6, 3, 2, 5, 4],
      [1, 5, 6, 4, 2, 3],
      [6, 3, 2, 5, 4, 1],
    ];
    expect(concordance(ranks, { k: 6, r: 3, lambda: 3 })).to.be.closeTo(25.5 / 157.5, 1e-15);
  });

  it('corrects for ties: wings, tails and bills of twelve birds (Zar, Biostatistical Analysis, Example 20.5)', () => {
    const ranks = [
      [4, 8.5, 10, 1.5, 3, 1.5, 7, 5, 8.5, 11, 6, 12],
      [5, 7, 11, 2.5, 5, 1, 5, 2.5, 9.5, 8, 9.5, 12],
      [5.5, 5.5, 9.5, 2, 3, 1, 8, 4, 11, 9.5, 7, 12],
    ];
    expect(concordance(ranks, { k: 12, r: 3, lambda: 3 })).to.be.closeTo(0.924, 0.0005);
  });

  it("gives the statistics of Durbin's test on seven varieties of ice cream (Conover 1999, page 391: 12 and 8)", () => {
    const ranks = [
      [2, 3, 0, 1, 0, 0, 0],
      [0, 3, 1, 0, 2, 0, 0],
      [0, 0, 2, 1, 0, 3, 0],
      [0, 0, 0, 1, 2, 0, 3],
      [3, 0, 0, 0, 1, 2, 0],
      [0, 3, 0, 0, 0, 1, 2],
      [3, 0, 1, 0, 0, 0, 2],
    ];
    const [n, k, lambda] = [7, 3, 1] as const;
    const first = (concordance(ranks, { k, r: 3, lambda }) * lambda * (n ** 2 - 1)) / (k + 1);
    expect(first).to.equal(12);
    expect(first / (n - 1) / ((n * k - n - first) / (n * k - n - n + 1))).to.equal(8);
  });
});

describe('rankAgreement', () => {
  it('is 1 if all reviewers have the same order, and 0 if their orders cancel out', () => {
    expect(rankAgreement(rankings('abc', 'abc', 'abc'), 'abc'.split(''))).to.deep.equal({
      kendall_w: 1,
      reviewers: 3,
      reason: NONE,
    });
    const none = rankAgreement(rankings('abc', 'bca', 'cab'), 'abc'.split('')).kendall_w;
    expect(Object.is(none, 0)).to.equal(true);
  });

  it('compares reviewers that each left out another answer by what they could agree on', () => {
    for (const answers of ['abc', 'abcd', 'abcdefgh']) {
      const consistent = answers.split('').map((own) => answers.replace(own, ''));
      expect(rankAgreement(rankings(...consistent), answers.split(''))).to.deep.equal({
        kendall_w: 1,
        reviewers: answers.length,
        reason: NONE,
      });
    }
    const circle = rankAgreement(rankings('bc', 'ca', 'ab'), 'abc'.split('')).kendall_w;
    expect(Object.is(circle, 0)).to.equal(true);
  });

  it('is the spread of the sums of ranks, as a share of that of full agreement, whatever is ranked', () => {
    const spread = (texts: readonly string[]): number => {
      const sums = 'abcd'.split('').map((answer) => texts.reduce((sum, text) => sum + text.indexOf(answer) + 1, 0));
      const mean = sums.reduce((sum, each) => sum + each, 0) / sums.length;
      return sums.reduce((sum, each) => sum + (each - mean) ** 2, 0);
    };
    const full = spread(['bcd', 'acd', 'abd', 'abc']);
    const first = ordersOf('bcd');
    for (const a of first)
      for (const b of ordersOf('acd'))
        for (const c of ordersOf('abd'))
          for (const d of ordersOf('abc')) {
            const { kendall_w: w } = rankAgreement(rankings(a, b, c, d), 'abcd'.split(''));
            expect(w)
              .to.be.closeTo(spread([a, b, c, d]) / full, 1e-12)
              .and.be.within(0, 1);
          }
  });

  it('does not depend on the order of answers or reviewers', () => {
    const given = rankings('acdb', 'dcba', 'abcd', 'bdca');
    const { kendall_w: w } = rankAgreement(given, 'abcd'.split(''));
    for (const answers of ordersOf('abcd')) {
      expect(rankAgreement(given.toReversed(), answers.split('')).kendall_w).to.equal(w);
    }
  });

  for (const [what, given, answers, reason] of [
    ['two reviewers, also of two answers', rankings('ab', 'ba'), 'ab', 'few_reviewers'],
    ['no reviewer', [], 'abc', 'few_reviewers'],
    ['two answers', rankings('ab', 'ba', 'ab'), 'ab', 'few_answers'],
    [
      'one reviewer that saw all answers among those that left out their own',
      rankings('bcd', 'acd', 'abcd', 'abc'),
      'abcd',
      'unbalanced',
    ],
    ['an answer that two reviewers left out', rankings('bcd', 'bcd', 'abd', 'abc'), 'abcd', 'unbalanced'],
    ['reviewers fewer than answers, each without its own', rankings('bcd', 'acd', 'abd'), 'abcd', 'unbalanced'],
    ['reviewers that left out two answers each', rankings('bc', 'cd', 'da', 'ab'), 'abcd', 'unbalanced'],
  ] as const) {
    it(`is not defined for ${what}`, () => {
      expect(rankAgreement(given, answers.split(''))).to.deep.equal({
        kendall_w: null,
        reviewers: given.length,
        reason,
      });
    });
  }
});

describe('memberPoints', () => {
  it('counts the answers below an answer, as the mean over the reviewers that saw it', () => {
    expect(memberPoints(rankings('bc', 'ac', 'ab'), 'abc'.split(''))).to.deep.equal([
      { member: 'a', points: 1, rank: 1 },
      { member: 'b', points: 0.5, rank: 2 },
      { member: 'c', points: 0, rank: 3 },
    ]);
  });

  it('orders equal points by the order of members', () => {
    const given = rankings('xyz', 'yzx', 'zxy');
    expect(memberPoints(given, ['z', 'x', 'y']).map(({ member, rank }) => [member, rank])).to.deep.equal([
      ['z', 1],
      ['x', 2],
      ['y', 3],
    ]);
  });

  it('finds means of different numbers of reviewers equal', () => {
    const given = rankings('abcd', 'bacd', 'cd', 'dc');
    expect(memberPoints(given, 'abcd'.split('')).map(({ points }) => points)).to.deep.equal([2.5, 2.5, 0.75, 0.25]);
    expect(memberPoints(rankings('cab', 'ca', 'ac'), 'abc'.split(''))).to.deep.include({
      member: 'a',
      points: 2 / 3,
      rank: 2,
    });
  });

  it('gives no points to an answer that no reviewer saw', () => {
    expect(memberPoints(rankings('bc'), 'abc'.split('')).map(({ member, points }) => [member, points])).to.deep.equal([
      ['b', 1],
      ['a', 0],
      ['c', 0],
    ]);
  });
});

describe('juryAgreement', () => {
  /** Rounds from a line per member; a dot is no score. */
  const roundsOf = (...lines: readonly string[]): (number | null)[][] => {
    const members = lines.map((line) => line.split(' ').map((sign) => (sign === '.' ? null : Number(sign))));
    return (members[0] ?? []).map((_, round) => members.map((scores) => scores[round] ?? null));
  };

  it("gives alpha of Krippendorff's example with missing values (Computing Krippendorff's Alpha-Reliability, 2011: 0.849)", () => {
    const rounds = roundsOf(
      '1 2 3 3 2 1 4 1 2 . . .',
      '1 2 3 3 2 2 4 1 2 5 . 3',
      '. 3 3 3 2 3 4 2 2 5 1 .',
      '1 2 3 3 2 4 4 1 2 5 1 .',
    );
    expect(juryAgreement(rounds).alpha).to.be.closeTo(0.849, 0.0005);
  });

  it('gives alpha of three coders and fifteen units (Wikipedia, "Krippendorff\'s alpha": 0.811)', () => {
    const rounds = roundsOf(
      '. . . . . 3 4 1 2 1 1 3 3 . 3',
      '1 . 2 1 3 3 4 3 . . . . . . .',
      '. . 2 1 3 4 4 . 2 1 1 3 3 . 4',
    );
    expect(juryAgreement(rounds).alpha).to.be.closeTo(0.811, 0.0005);
  });

  it('is 1 if the members agree in every round, and below 0 if they agree less than by chance', () => {
    expect(
      juryAgreement([
        [5, 5],
        [8, 8],
      ]).alpha,
    ).to.equal(1);
    expect(
      juryAgreement([
        [5, 8],
        [8, 5],
      ]).alpha,
    ).to.equal(-0.5);
  });

  it('does not depend on the unit of the scores', () => {
    const whole = [
      [1, 2, 4],
      [3, 3, 2],
      [5, 4, 4],
    ];
    const tenths = whole.map((round) => round.map((score) => score / 10));
    expect(juryAgreement(tenths).alpha).to.equal(juryAgreement(whole).alpha);
  });

  it('has the spread of the last round, exactly, and counts its scores', () => {
    expect(
      juryAgreement([
        [1, 10, 5],
        [8.3, null, 6.3],
      ]),
    ).to.deep.include({ spread: 2, members: 2 });
    expect(juryAgreement([[8.95, 0.95]])).to.include({ spread: 8 });
    expect(juryAgreement([[7, 7]])).to.deep.include({ spread: 0, members: 2 });
    expect(juryAgreement([[null, null]])).to.deep.include({ spread: 0, members: 0 });
  });

  for (const [what, rounds, reason] of [
    ['one round', [[1, 5, 8]], 'one_round'],
    ['no round', [], 'one_round'],
    [
      'one round with scores to compare',
      [
        [1, 5],
        [7, null],
      ],
      'one_round',
    ],
    [
      'one score a round',
      [
        [1, null],
        [null, 5],
        [7, null],
      ],
      'one_rater',
    ],
    ['a jury of one', [[1], [5]], 'one_rater'],
    [
      'equal scores only',
      [
        [8.1, 8.1, 8.1],
        [8.1, 8.1, 8.1],
      ],
      'no_variation',
    ],
    [
      'scores that differ only where there is nothing to compare',
      [
        [8, 8],
        [8, 8],
        [3, null],
      ],
      'no_variation',
    ],
  ] as const) {
    it(`is not defined for ${what}`, () => {
      expect(juryAgreement(rounds)).to.deep.include({ alpha: null, reason });
    });
  }
});

describe('aggregateScore', () => {
  for (const [scores, median, lowest, mean] of [
    [[7], 7, 7, 7],
    [[9, 4, 8], 8, 4, 7],
    [[9, 4, 8, 7], 7.5, 4, 7],
    [[10, 9.5], 9.75, 9.5, 9.75],
    [[8.2, 7.7, 8.1], 8.1, 7.7, 8],
    [[8.1, 8.1, 8.1], 8.1, 8.1, 8.1],
    [[0.1, 0.2, 0.3], 0.2, 0.1, 0.2],
    [[0, 10 / 3, 20 / 3], 10 / 3, 0, 10 / 3],
  ] as const) {
    it(`has the median ${median}, the lowest ${lowest} and the mean ${mean} of ${scores.join(', ')}`, () => {
      expect(aggregateScore(scores, 'median')).to.equal(median);
      expect(aggregateScore(scores, 'lowest')).to.equal(lowest);
      expect(aggregateScore(scores, 'mean')).to.equal(mean);
    });
  }

  it('finds the mean of scores with one decimal exactly, in any order', () => {
    const tenths = Array.from({ length: 41 }, (_, index) => 60 + index);
    for (const a of tenths)
      for (const b of tenths) {
        const c = 240 - a - b;
        if (c < 0 || c > 100) continue;
        expect(aggregateScore([a / 10, b / 10, c / 10], 'mean')).to.equal(8);
      }
  });

  it('never gives minus zero', () => {
    for (const how of ['median', 'lowest', 'mean'] as const) {
      expect(Object.is(aggregateScore([-0, -0], how), 0)).to.equal(true);
    }
  });
});
