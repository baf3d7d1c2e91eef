import { expect } from 'chai';
import { jsonBytes } from '../../../src/graph/limits.js';
import { MAX_ANALYSIS_BYTES, readAnalysis } from '../../../src/council/deliberation/analysis-answer.js';
import type { Analysis } from '../../../src/generated/schemas.js';

const LETTERS = ['A', 'B', 'C'];

const WHOLE: Analysis = {
  consensus: ['Trees cool streets.'],
  contradictions: [
    {
      topic: 'Cost',
      stances: [
        { response: 'A', stance: 'Cheap.' },
        { response: 'C', stance: 'Dear.' },
      ],
    },
  ],
  partial_coverage: [{ responses: ['A', 'B'], point: 'Roots' }],
  unique_insights: [{ response: 'B', insight: 'Bees' }],
  blind_spots: ['Water'],
};
const EMPTY: Analysis = {
  consensus: [],
  contradictions: [],
  partial_coverage: [],
  unique_insights: [],
  blind_spots: [],
};

const read = (given: unknown): Analysis | null => readAnalysis(JSON.stringify(given), LETTERS);

describe('readAnalysis', () => {
  it('reads an object with the five fields, alone, in a fence, after thoughts or in another object', () => {
    const json = JSON.stringify(WHOLE);
    for (const text of [
      json,
      `Here:\n\`\`\`json\n${json}\n\`\`\``,
      `<think>{"consensus":["no"]}</think>${json}`,
      `{"analysis":${json}}`,
    ]) {
      expect(readAnalysis(text, LETTERS)).to.deep.equal(WHOLE);
    }
  });

  it('reads keys and letters in any case, and responses by their names', () => {
    const given = {
      Consensus: WHOLE.consensus,
      CONTRADICTIONS: [
        {
          Topic: 'Cost',
          Stances: [
            { Response: 'response a', Stance: 'Cheap.' },
            { response: 'c', stance: 'Dear.' },
          ],
        },
      ],
      partial_coverage: [{ responses: 'A and B', point: 'Roots' }],
      unique_insights: [{ response: 'Response B', insight: 'Bees' }],
      blind_spots: 'Water',
    };
    expect(read(given)).to.deep.equal(WHOLE);
  });

  it('reads empty lists, and refuses an analysis that lacks one of the five', () => {
    expect(read(EMPTY)).to.deep.equal(EMPTY);
    for (const field of Object.keys(EMPTY)) {
      const { [field]: _, ...others } = { ...WHOLE } as Record<string, unknown>;
      expect(read(others), field).to.equal(null);
      expect(read({ ...others, [field]: null }), field).to.equal(null);
    }
    expect(read({ summary: 'x' })).to.equal(null);
    expect(read({})).to.equal(null);
  });

  it('leaves out other fields, entries without text, and what names no response that was shown', () => {
    const given = {
      ...WHOLE,
      verdict: 'B',
      consensus: ['', 'Trees cool streets.', 5],
      contradictions: [
        {
          ...WHOLE.contradictions[0],
          stances: [...(WHOLE.contradictions[0]?.stances ?? []), { response: 'D', stance: 'x' }],
          why: 1,
        },
        { topic: 'Age', stances: [{ response: 'D', stance: 'x' }] },
        { topic: ' ', stances: [{ response: 'A', stance: 'x' }] },
        'Cost',
      ],
      partial_coverage: [
        { responses: ['A', 'A', 'B', 'E'], point: 'Roots' },
        { responses: ['E'], point: 'x' },
        { responses: ['A'] },
      ],
      unique_insights: [
        { response: 'B', insight: 'Bees' },
        { response: 'm2', insight: 'x' },
      ],
    };
    expect(read(given)).to.deep.equal(WHOLE);
  });

  for (const [what, text] of [
    ['nothing', ''],
    ['prose', 'All agree.'],
    ['a field twice', JSON.stringify(EMPTY).replace('{', '{"consensus":["x"],')],
    ['a number as list', JSON.stringify({ ...EMPTY, consensus: 5 })],
    ['an object as list', JSON.stringify({ ...EMPTY, contradictions: { topic: 'x' } })],
    ['a text as list of contradictions', JSON.stringify({ ...EMPTY, contradictions: 'x' })],
    ['thoughts alone', `<think>${JSON.stringify(EMPTY)}</think>`],
  ] as const) {
    it(`refuses ${what}`, () => expect(readAnalysis(text, LETTERS)).to.equal(null));
  }

  it('keeps the first 30 entries of a list, and of a contradiction as many stances as there are responses', () => {
    const texts = Array.from({ length: 40 }, (_, index) => `Point ${index + 1}.`);
    const insights = texts.map((insight) => ({ response: 'A', insight }));
    const stances = texts.map((stance) => ({ response: 'A', stance }));
    expect(
      read({ ...EMPTY, consensus: texts, unique_insights: insights, contradictions: [{ topic: 'x', stances }] }),
    ).to.deep.equal({
      ...EMPTY,
      consensus: texts.slice(0, 30),
      unique_insights: insights.slice(0, 30),
      contradictions: [{ topic: 'x', stances: stances.slice(0, 3) }],
    });
  });

  it('cuts every text at a sentence to the first of 4000, 2000, … characters at which 64 KiB hold it', () => {
    const sentence = 'A sentence of some words. ';
    const texts = Array.from({ length: 30 }, () => sentence.repeat(150));
    const analysis = read({ ...EMPTY, consensus: texts });
    expect(jsonBytes(analysis)).to.be.at.most(MAX_ANALYSIS_BYTES);
    for (const text of analysis?.consensus ?? []) {
      expect(text.length).to.be.within(2000 - sentence.length, 2000);
      expect(text.endsWith('words.')).to.equal(true);
    }
    const short = { consensus: [sentence.repeat(2000).trim()] };
    expect(read({ ...EMPTY, ...short })?.consensus, 'a long text that fits').to.deep.equal(short.consensus);
  });

  it('bounds the worst that eight responses allow, in well-formed Unicode', () => {
    const letters = ['A', 'B', 'C', 'D', 'E', 'F', 'G', 'H'];
    for (const sign of ['\u0001', '😀', '"', '\ud800', 'x']) {
      const long = `${sign}x`.repeat(200);
      const fill = <Entry>(entry: Entry): Entry[] => Array.from({ length: 60 }, () => entry);
      const given: Analysis = {
        consensus: fill(long),
        contradictions: fill({ topic: long, stances: letters.map((response) => ({ response, stance: long })) }),
        partial_coverage: fill({ responses: letters, point: long }),
        unique_insights: fill({ response: 'H', insight: long }),
        blind_spots: fill(long),
      };
      const analysis = readAnalysis(JSON.stringify(given), letters);
      expect(jsonBytes(analysis)).to.be.within(1, MAX_ANALYSIS_BYTES);
      expect(analysis?.contradictions[29]?.stances).to.have.length(8);
      expect(JSON.stringify(analysis)).not.to.match(/\\ud[89a-f]/);
    }
  });
});
