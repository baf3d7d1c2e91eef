import { expect } from 'chai';
import { MAX_FEEDBACK_CHARS } from '../../../src/graph/limits.js';
import { readRanking } from '../../../src/council/deliberation/ranking-answer.js';

const LETTERS = ['A', 'B', 'C'];
const BAC = { ranking: ['B', 'A', 'C'], comment: 'x' };

const usable: [string, string, { ranking: string[]; comment: string }][] = [
  ['a plain object', '{"ranking":["B","A","C"],"comment":"x"}', BAC],
  ['small letters', '{"ranking":["b","a","c"],"comment":"x"}', BAC],
  ['responses by their names', '{"ranking":["Response B","response a","RESPONSE C."],"comment":"x"}', BAC],
  ['numbered letters', '{"ranking":["1. B","2. A","3. C"],"comment":"x"}', BAC],
  ['letters in brackets', '{"ranking":["[B]","(A)","**C**"],"comment":"x"}', BAC],
  ['keys in capitals', '{"Ranking":["B","A","C"],"COMMENT":"x"}', BAC],
  ['fenced JSON among words', 'Sure!\n```json\n{"ranking":["B","A","C"],"comment":"x"}\n```\nDone.', BAC],
  ['the object after thoughts', '<think>{"ranking":["A","B","C"]}</think>{"ranking":["B","A","C"],"comment":"x"}', BAC],
  ['the only object of an object', '{"result":{"ranking":["B","A","C"],"comment":"x"}}', BAC],
  ['other properties', '{"scores":{"A":1},"ranking":["B","A","C"],"comment":"x"}', BAC],
  ['a list of lines as comment', '{"ranking":["B","A","C"],"comment":["x","y"]}', { ...BAC, comment: 'x\ny' }],
  ['no comment', '{"ranking":["B","A","C"]}', { ...BAC, comment: '' }],
  ['an unpaired surrogate, replaced', '{"ranking":["B","A","C"],"comment":"\\ud800"}', { ...BAC, comment: '\ufffd' }],
];

const unusable: [string, string][] = [
  ['nothing', ''],
  ['prose', 'B is best, then A, then C.'],
  ['a letter left out', '{"ranking":["B","A"]}'],
  ['a letter twice', '{"ranking":["B","A","C","B"]}'],
  ['a letter twice in place of another', '{"ranking":["B","A","B"]}'],
  ['a letter that was not shown', '{"ranking":["B","A","C","D"]}'],
  ['a letter that was not shown in place of another', '{"ranking":["B","A","D"]}'],
  ['tied letters', '{"ranking":[["B","A"],"C"]}'],
  ['one text', '{"ranking":"B > A > C","comment":"x"}'],
  ['a text with commas', '{"ranking":"Response B, Response A and Response C","comment":"x"}'],
  ['letters as keys', '{"ranking":{"B":1,"A":2,"C":3},"comment":"x"}'],
  ['entries that are objects', '{"ranking":[{"response":"B"},{"response":"A"},{"response":"C"}],"comment":"x"}'],
  ['an entry that is null', '{"ranking":["B","A",null],"comment":"x"}'],
  ['words for letters', '{"ranking":["the second","the first","the third"]}'],
  ['names of members', '{"ranking":["m2","m1","m3"]}'],
  ['numbers', '{"ranking":[2,1,3]}'],
  ['two rankings', '{"ranking":["B","A","C"],"ranking":["A","B","C"]}'],
  ['two comments', '{"ranking":["B","A","C"],"comment":"x","Comment":"y"}'],
  ['a comment that is no text', '{"ranking":["B","A","C"],"comment":{"x":1}}'],
  ['an incomplete ranking before a whole one', '{"ranking":["B"]} {"ranking":["B","A","C"]}'],
  ['null', '{"ranking":null}'],
];

describe('readRanking', () => {
  for (const [what, text, ranking] of usable) {
    it(`reads ${what}`, () => expect(readRanking(text, LETTERS)).to.deep.equal(ranking));
  }

  for (const [what, text] of unusable) {
    it(`refuses ${what}`, () => expect(readRanking(text, LETTERS)).to.equal(null));
  }

  it('wants the letters shown, not the first of the alphabet', () => {
    expect(readRanking('{"ranking":["D","B"]}', ['B', 'D'])?.ranking).to.deep.equal(['D', 'B']);
    expect(readRanking('{"ranking":["A","B"]}', ['B', 'D'])).to.equal(null);
  });

  it('cuts a long comment at a sentence', () => {
    const sentence = 'A sentence of some words. ';
    const comment = sentence.repeat(1000);
    const read = readRanking(JSON.stringify({ ranking: LETTERS, comment }), LETTERS)?.comment ?? '';
    expect(read.length).to.be.within(MAX_FEEDBACK_CHARS - sentence.length, MAX_FEEDBACK_CHARS);
    expect(read.endsWith(sentence.trim())).to.equal(true);
  });

  it('reads an answer of 1 MiB of letters in linear time', () => {
    for (const piece of ['"B",', '"((((",', '"> > >",', '{"ranking":"']) {
      const list = piece.repeat((1024 * 1024) / piece.length);
      expect(readRanking(`{"ranking":[${list}"A"]}`, LETTERS)).to.equal(null);
    }
  });
});
