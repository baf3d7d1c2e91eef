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
      partial_coverage: [{ responses: ['a', 'Response B'], point: 'Roots' }],
      unique_insights: [{ response: 'Response B', insight: 'Bees' }],
      blind_spots: ['Water'],
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

  it('leaves out entries with a blank text', () => {
    const given = {
      ...WHOLE,
      consensus: ['', ...WHOLE.consensus],
      contradictions: [...WHOLE.contradictions, { topic: ' ', stances: [{ response: 'A', stance: 'x' }] }],
      partial_coverage: [...WHOLE.partial_coverage, { responses: ['A'], point: '' }],
      unique_insights: [{ response: 'A', insight: ' ' }, ...WHOLE.unique_insights],
      blind_spots: [' ', ...WHOLE.blind_spots],
    };
    expect(read(given)).to.deep.equal(WHOLE);
  });

  const STANCE = { response: 'A', stance: 'Cheap.' };
  for (const [what, change] of [
    ['a further field', { verdict: 'B' }],
    ['a text as consensus', { consensus: 'Trees cool streets.' }],
    ['a text as blind spots', { blind_spots: 'Water' }],
    ['a number among texts', { consensus: ['Trees cool streets.', 5] }],
    ['a list among texts', { blind_spots: [['Water']] }],
    ['an object among texts', { consensus: [{ text: 'Trees cool streets.' }] }],
    ['null among texts', { consensus: [null] }],
    ['a text as contradiction', { contradictions: ['Cost'] }],
    ['a contradiction without stances', { contradictions: [{ topic: 'Cost' }] }],
    ['a contradiction with an empty list of stances', { contradictions: [{ topic: 'Cost', stances: [] }] }],
    ['a contradiction without a topic', { contradictions: [{ stances: [STANCE] }] }],
    ['a contradiction with a further field', { contradictions: [{ topic: 'Cost', stances: [STANCE], why: 'x' }] }],
    ['stances by letter', { contradictions: [{ topic: 'Cost', stances: { A: 'Cheap.' } }] }],
    ['a stance without a response', { contradictions: [{ topic: 'Cost', stances: [STANCE, { stance: 'x' }] }] }],
    ['a stance that is a number', { contradictions: [{ topic: 'Cost', stances: [{ ...STANCE, stance: 5 }] }] }],
    ['a stance of no response shown', { contradictions: [{ topic: 'Cost', stances: [{ ...STANCE, response: 'D' }] }] }],
    ['a text as responses', { partial_coverage: [{ responses: 'A and B', point: 'Roots' }] }],
    ['an empty list of responses', { partial_coverage: [{ responses: [], point: 'Roots' }] }],
    ['a response that was not shown among others', { partial_coverage: [{ responses: ['A', 'E'], point: 'Roots' }] }],
    ['a partial coverage without a point', { partial_coverage: [{ responses: ['A'] }] }],
    ['an insight of a member', { unique_insights: [{ response: 'm2', insight: 'Bees' }] }],
    ['an insight of a list of responses', { unique_insights: [{ response: ['B'], insight: 'Bees' }] }],
    ['an insight that is a list', { unique_insights: [{ response: 'B', insight: ['Bees'] }] }],
  ] as const) {
    it(`refuses ${what}`, () => expect(read({ ...WHOLE, ...change })).to.equal(null));
  }

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
