import { expect } from 'chai';
import { readCritique } from '../../src/council/critique.js';

const usable: [string, string, { score: number; feedback: string }][] = [
  ['a plain object', '{"score": 7.5, "feedback": "More."}', { score: 7.5, feedback: 'More.' }],
  ['space around the object', ' \n{"score":8,"feedback":""}\n', { score: 8, feedback: '' }],
  ['both ends of the scale: 0', '{"score":0,"feedback":"x"}', { score: 0, feedback: 'x' }],
  ['both ends of the scale: 10', '{"score":10,"feedback":"x"}', { score: 10, feedback: 'x' }],
  ['minus zero as zero', '{"score":-0,"feedback":"x"}', { score: 0, feedback: 'x' }],
  ['an exponent', '{"score":8e0,"feedback":"x"}', { score: 8, feedback: 'x' }],
  ['other properties', '{"why":{"score":1},"score":9,"feedback":"x"}', { score: 9, feedback: 'x' }],
  [
    'the names inside the feedback',
    '{"score":3,"feedback":"\\"score\\": 9, {\\"score\\": 9}"}',
    { score: 3, feedback: '"score": 9, {"score": 9}' },
  ],
  ['an unpaired surrogate, replaced', '{"score":3,"feedback":"a\\ud800b"}', { score: 3, feedback: 'a\ufffdb' }],
];

const unusable: [string, string][] = [
  ['nothing', ''],
  ['prose', 'I would give it 9 of 10.'],
  ['prose before JSON', 'Here: {"score":9,"feedback":"x"}'],
  ['prose after JSON', '{"score":9,"feedback":"x"} as asked'],
  ['fenced JSON', '```json\n{"score":9,"feedback":"x"}\n```'],
  ['two objects', '{"score":9,"feedback":"x"}{"score":2,"feedback":"x"}'],
  ['a cut object', '{"score":9,"feedback":"x'],
  ['NaN', '{"score":NaN,"feedback":"x"}'],
  ['Infinity', '{"score":Infinity,"feedback":"x"}'],
  ['a number past all doubles', '{"score":1e400,"feedback":"x"}'],
  ['a fraction as text', '{"score":"9/10","feedback":"x"}'],
  ['a number as text', '{"score":"9","feedback":"x"}'],
  ['minus one', '{"score":-1,"feedback":"x"}'],
  ['eleven', '{"score":11,"feedback":"x"}'],
  ['a billion', '{"score":1e9,"feedback":"x"}'],
  ['null as score', '{"score":null,"feedback":"x"}'],
  ['true as score', '{"score":true,"feedback":"x"}'],
  ['a list as score', '{"score":[9],"feedback":"x"}'],
  ['no score', '{"feedback":"x"}'],
  ['no feedback', '{"score":9}'],
  ['null as feedback', '{"score":9,"feedback":null}'],
  ['a list as feedback', '{"score":9,"feedback":["x"]}'],
  ['another spelling', '{"Score":9,"Feedback":"x"}'],
  ['null', 'null'],
  ['a number', '9'],
  ['a text', '"9"'],
  ['a list', '[{"score":9,"feedback":"x"}]'],
  ['an inherited score', '{"__proto__":{"score":9,"feedback":"x"}}'],
  ['two scores', '{"score":2,"feedback":"x","score":9}'],
  ['two scores, one in escapes', '{"sc\\u006fre":2,"feedback":"x","score":9}'],
  ['two feedbacks', '{"score":9,"feedback":"x","feedback":"y"}'],
];

describe('readCritique', () => {
  for (const [what, text, critique] of usable) {
    it(`reads ${what}`, () => expect(readCritique(text)).to.deep.equal(critique));
  }

  for (const [what, text] of unusable) {
    it(`refuses ${what}`, () => expect(readCritique(text)).to.equal(null));
  }

  it('reads a feedback of a megabyte', () => {
    const feedback = 'ab"\\\n'.repeat(200_000);
    expect(readCritique(JSON.stringify({ score: 5, feedback }))).to.deep.equal({ score: 5, feedback });
  });
});
