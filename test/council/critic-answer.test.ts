import { expect } from 'chai';
import { readCritique } from '../../src/council/executors.js';

const NINE_BRACE = { score: 9, feedback: 'a } b' };

const usable: [string, string, { score: number; feedback: string }][] = [
  ['a plain object', '{"score": 7.5, "feedback": "More."}', { score: 7.5, feedback: 'More.' }],
  ['space around the object', ' \n{"score":8,"feedback":""}\n', { score: 8, feedback: '' }],
  ['both ends of the scale: 10', '{"score":10,"feedback":"x"}', { score: 10, feedback: 'x' }],
  ['minus zero as zero', '{"score":-0,"feedback":"x"}', { score: 0, feedback: 'x' }],
  ['other properties', '{"why":{"score":1},"score":9,"feedback":"x"}', { score: 9, feedback: 'x' }],
  [
    'a score and feedback named inside the feedback',
    '{"score":3,"feedback":"\\"score\\": 9, {\\"score\\": 9}"}',
    { score: 3, feedback: '"score": 9, {"score": 9}' },
  ],
  ['prose before JSON', 'Here: {"score":9,"feedback":"x"}', { score: 9, feedback: 'x' }],
  ['prose with quotes and braces around JSON', 'I\'d "say {x}: {"score":9,"feedback":"a } b"} as asked {', NINE_BRACE],
  ['fenced JSON', 'Sure!\n```json\n{"score":9,"feedback":"x"}\n```\n', { score: 9, feedback: 'x' }],
  ['the first of two objects', '{"score":9,"feedback":"x"}{"score":2,"feedback":"x"}', { score: 9, feedback: 'x' }],
  ['the first object that has a score', '{} {"plan":"a"} {"score":9,"feedback":"x"}', { score: 9, feedback: 'x' }],
  ['the object in a list', '[{"score":9,"feedback":"x"}]', { score: 9, feedback: 'x' }],
  ['a score as text', '{"score":"9","feedback":"x"}', { score: 9, feedback: 'x' }],
  ['a score with a decimal comma', '{"score":"8,5","feedback":"x"}', { score: 8.5, feedback: 'x' }],
  ['a score out of ten', '{"score":"8/10","feedback":"x"}', { score: 8, feedback: 'x' }],
  ['a score in percent', '{"score":"90%","feedback":"x"}', { score: 9, feedback: 'x' }],
  ['keys in capitals', '{"Score":9,"FEEDBACK":"x"}', { score: 9, feedback: 'x' }],
  ['the only object of an object', '{"result": {"score":9,"feedback":"x"},\n}', { score: 9, feedback: 'x' }],
  [
    'the only object of an object among words',
    'So: {"critique":{"score":9,"feedback":"a } b"}} Done.',
    { score: 9, feedback: 'a } b' },
  ],
  [
    'an object with a score rather than one within another',
    '{"example":{"score":2,"feedback":"no"}} {"score":9,"feedback":"x"}',
    { score: 9, feedback: 'x' },
  ],
  ['a raw line break in the feedback', '{"score":9,"feedback":"a\n\tb"}', { score: 9, feedback: 'a\n\tb' }],
  ['a trailing comma', '{"score":9,"feedback":"x, }",}', { score: 9, feedback: 'x, }' }],
  ['both among words', 'So: {"score":"9", "feedback":["a\nb",],} Done.', { score: 9, feedback: 'a\nb' }],
  ['no feedback', '{"score":9}', { score: 9, feedback: '' }],
  ['null as feedback', '{"score":3,"feedback":null}', { score: 3, feedback: '' }],
  ['a list of lines as feedback', '{"score":9,"feedback":["x","y"]}', { score: 9, feedback: 'x\ny' }],
  [
    'the object after thoughts that contain another object',
    '<think>\n{"score":2,"feedback":"no"}\n</think>\n{"score":9,"feedback":"x"}',
    { score: 9, feedback: 'x' },
  ],
  [
    'the object after thoughts without an opening tag',
    'Perhaps {"score":2,"feedback":"no"}?\n</think>{"score":9,"feedback":"x"}',
    { score: 9, feedback: 'x' },
  ],
  [
    'the object after a word and thoughts',
    'Well. <Think>{"score":2,"feedback":"no"}</Think>{"score":9,"feedback":"x"}',
    { score: 9, feedback: 'x' },
  ],
  [
    'an object whose feedback contains a thought tag',
    '{"score":9,"feedback":"Take </think> out."}',
    { score: 9, feedback: 'Take </think> out.' },
  ],
  ['an unpaired surrogate, replaced', '{"score":3,"feedback":"a\\ud800b"}', { score: 3, feedback: 'a\ufffdb' }],
];

const unusable: [string, string][] = [
  ['nothing', ''],
  ['prose', 'I would give it 9 of 10.'],
  ['a cut object', '{"score":9,"feedback":"x'],
  ['Infinity', '{"score":Infinity,"feedback":"x"}'],
  ['a score out of another number', '{"score":"4/5","feedback":"x"}'],
  ['a score of words', '{"score":"nine","feedback":"x"}'],
  ['a score out of range before a good one', '{"score":81,"feedback":"x"} {"score":8,"feedback":"x"}'],
  ['a score of one of several parts', '{"parts":[{"score":9,"feedback":"x"}]}'],
  ['a list of other things as feedback', '{"score":9,"feedback":["x",{"y":1}]}'],
  ['thoughts alone', '<think>{"score":9,"feedback":"x"}</think>'],
  ['thoughts that never end', '<think>{"score":9,"feedback":"x"}'],
  ['eleven', '{"score":11,"feedback":"x"}'],
  ['null as score', '{"score":null,"feedback":"x"}'],
  ['no score', '{"feedback":"x"}'],
  ['two scores in two spellings', '{"Score":9,"score":2,"feedback":"x"}'],
  ['two scores in the only object of an object', '{"result":{"score":2,"feedback":"x","score":9}}'],
  ['two objects in an object', '{"first":{"score":2},"second":{"score":9}}'],
  ['more than 100 percent', '{"score":"110%","feedback":"x"}'],
  ['null', 'null'],
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

  it('refuses a long text of braces and quotes', () => {
    for (const text of [
      '{"'.repeat(500_000),
      '{"\\"'.repeat(300_000),
      '{"a":'.repeat(200_000),
      '{}'.repeat(500_000),
      '\\"'.repeat(500_000),
    ]) {
      expect(readCritique(text)).to.equal(null);
    }
  });
});
