import { expect } from 'chai';
import { relettered } from '../../../src/council/deliberation/relettered.js';
import type { Analysis } from '../../../src/generated/schemas.js';

const EMPTY: Analysis = {
  consensus: [],
  contradictions: [],
  partial_coverage: [],
  unique_insights: [],
  blind_spots: [],
};

/** The judge saw m1 as A, m2 as B and so on. */
const JUDGE = ['m1', 'm2', 'm3', 'm4'];

function textFor(to: readonly string[], text: string): string | undefined {
  return relettered({ ...EMPTY, blind_spots: [text] }, { from: JUDGE, to }).blind_spots[0];
}

describe('relettered', () => {
  it("names the same answers by the other reader's letters, in every field", () => {
    const analysis: Analysis = {
      consensus: ['Responses A and C agree.'],
      contradictions: [
        {
          topic: 'Cost in Response B',
          stances: [
            { response: 'A', stance: 'Cheaper than Response B.' },
            { response: 'B', stance: 'Dear.' },
          ],
        },
      ],
      partial_coverage: [{ responses: ['A', 'B', 'C'], point: 'Roots, as in Response A' }],
      unique_insights: [{ response: 'C', insight: 'Only Response C says so.' }],
      blind_spots: ['Even Response B is silent.'],
    };
    expect(relettered(analysis, { from: ['m1', 'm2', 'm3'], to: ['m3', 'm1', 'm2'] })).to.deep.equal({
      consensus: ['Responses A and B agree.'],
      contradictions: [
        {
          topic: 'Cost in Response C',
          stances: [
            { response: 'B', stance: 'Cheaper than Response C.' },
            { response: 'C', stance: 'Dear.' },
          ],
        },
      ],
      partial_coverage: [{ responses: ['A', 'B', 'C'], point: 'Roots, as in Response B' }],
      unique_insights: [{ response: 'A', insight: 'Only Response A says so.' }],
      blind_spots: ['Even Response C is silent.'],
    });
  });

  it('changes nothing for a reader with the same order', () => {
    const text = 'Response A, unlike responses B, C and D or Response B, says so.';
    expect(textFor(JUDGE, text)).to.equal(text);
  });

  it('calls an answer that the reader does not see another response', () => {
    const analysis: Analysis = {
      ...EMPTY,
      contradictions: [{ topic: 'Cost', stances: [{ response: 'A', stance: 'Dear.' }] }],
      partial_coverage: [{ responses: ['A', 'B', 'C'], point: 'Roots' }],
      unique_insights: [{ response: 'D', insight: 'Bees' }],
    };
    const {
      contradictions,
      partial_coverage: partial,
      unique_insights: unique,
    } = relettered(analysis, { from: JUDGE, to: ['m3', 'm4'] });
    expect(contradictions[0]?.stances[0]?.response).to.equal('another response');
    expect(partial[0]?.responses).to.deep.equal(['A', 'another response']);
    expect(unique[0]?.response).to.equal('B');
  });

  for (const [given, expected] of [
    ['Response A is best.', 'another response is best.'],
    ["Response C's tone", "Response B's tone"],
    ['Responses A and C agree', 'Response B and another response agree'],
    ['responses C, D, and B', 'responses A, B and another response'],
    ['Responses C & D', 'Responses A and B'],
    ['either Response C or D', 'either Response A or B'],
    ['Responses A and B', 'another response'],
    ['Responses B–D', 'Responses A, B and another response'],
    ['responses C-D', 'responses A and B'],
    ['Responses A to C', 'Response B and another response'],
  ] as const) {
    it(`puts ${JSON.stringify(given)} as ${JSON.stringify(expected)} for a reader of two answers`, () => {
      expect(textFor(['m4', 'm3'], given)).to.equal(expected);
    });
  }

  for (const text of [
    'In response I would agree.',
    'Response Analysis',
    'A response A',
    'response a',
    'Response E is none.',
  ]) {
    it(`keeps ${JSON.stringify(text)}`, () => {
      expect(textFor(JUDGE, text)).to.equal(text);
    });
  }
});
