import { expect } from 'chai';
import { citationsIn, withMissing, withSigns } from '../../src/draft/quotations.js';
import { missingOf, quotationsText } from '../../src/draft/verdicts.js';

const URLS = new Set(['https://example.org/', 'https://example.org/oak_(tree)', 'https://example.org/a?b=1,2']);
const quotedIn = (draft: string): readonly (string | null)[] => citationsIn(draft, URLS).map(({ quoted }) => quoted);

const cited = (...citations: readonly (readonly [quoted: string, quotation: 'exact' | 'missing' | null])[]) => ({
  ...{
    mark: '4f2a9c01:3',
    document: null,
    filename: null,
    page: 3,
    chunks: [],
    url: null,
    title: null,
    quotation: null,
  },
  citations: citations.map(([quoted, quotation]) => ({ quoted, quotation })),
});

describe('The quotations of a draft', () => {
  it('are counted in a sentence', () => {
    const sentence = (...verdicts: readonly ('exact' | 'missing' | null)[]) =>
      quotationsText([cited(...verdicts.map((verdict, at) => [`quotation ${at}`, verdict] as const))]);
    expect(sentence()).to.equal(null);
    expect(sentence(null)).to.equal(null);
    expect(sentence('exact')).to.equal('The quotation was found in its source.');
    expect(sentence('exact', 'exact')).to.equal('All 2 quotations were found in their source.');
    expect(sentence('missing')).to.equal('The quotation was not found in its source.');
    expect(sentence('missing', 'exact')).to.equal('1 of 2 quotations was not found in its source.');
    expect(sentence('missing', 'exact', 'missing')).to.equal('2 of 3 quotations were not found in their source.');
  });

  it('are missing if no source that is cited beside has them', () => {
    const [one, other] = [cited(['a b c d', 'missing'], ['e f g h', 'missing']), cited(['a b c d', 'exact'])];
    expect(missingOf(one, [one, other])).to.deep.equal(['e f g h']);
    expect(quotationsText([one, other])).to.equal('1 of 2 quotations was not found in its source.');
  });

  it('are marked behind their citation, not in the draft that nobody judged', () => {
    const draft = '“a b c d” [4f2a9c01:3] “e f g h” [4f2a9c01:3].';
    const signed = withSigns(draft, [cited(['a b c d', 'exact'], ['e f g h', 'missing'])]);
    expect(signed.startsWith('“a b c d” [4f2a9c01:3] “e f g h” [4f2a9c01:3] ')).to.equal(true);
    expect(withMissing([{ tag: 'p', children: [signed] }])[0]).to.have.nested.property('children[1].tag', 'mark');
    expect(withSigns(draft, [cited(['a b c d', 'exact'])])).to.equal(draft);
  });
});

describe('The quotation of a citation', () => {
  for (const marks of ['""', '“”', '„“', '„”', '””', '«»', '»«', '»»', '‹›', '›‹', '‚‘', '‘’', "''", '「」', '『』']) {
    it(`stands in ${marks}`, () => {
      expect(quotedIn(`It says ${marks[0]}a b’s c d${marks[1]} here [4f2a9c01:3].`)).to.deep.equal(['a b’s c d']);
    });
  }

  const cases: readonly [title: string, draft: string, quoted: readonly (string | null)[]][] = [
    ['has at least 4 words', '"only three words" [4f2a9c01:3]', [null]],
    [
      'has two characters a word in Chinese',
      '「東京の古い木は高い」 [4f2a9c01:3], 「東京の古い木は」 [4f2a9c01:3]',
      ['東京の古い木は高い', null],
    ],
    ['is the nearest one', '"a b c d" and "e f g h" and "i" [4f2a9c01:3]', ['e f g h']],
    ['belongs to one citation', '"a b c d" [4f2a9c01:3] is so, as others found [4f2a9c01:4].', ['a b c d', null]],
    [
      'belongs to citations side by side',
      '"a b c d" [4f2a9c01:3, 4f2a9c01:4] and [4f2a9c01:5]',
      Array(3).fill('a b c d'),
    ],
    ['comes before', '[4f2a9c01:3] says "a b c d".', [null]],
    ['may hold its citation', '“a b c d [4f2a9c01:3].” So [4f2a9c01:4].', ['a b c d', null]],
    ['stands in the same paragraph', '"a b c d"\n\nSo [4f2a9c01:3].\n- "e f g h"\n- i [4f2a9c01:3]', [null, null]],
    ['stands in the same sentence', 'He said "a b c d". The report is old [4f2a9c01:3].', [null]],
    ['may end a sentence', '"A b c d." [4f2a9c01:3] "A b c e". [4f2a9c01:3]', ['A b c d.', 'A b c e']],
    ['knows abbreviations', '"A b c d" (Dr. Oak, p. 12) [4f2a9c01:3]', ['A b c d']],
    ['runs over lines, also of a block quote', '> “a b\n> c d” [4f2a9c01:3]', ['a b c d']],
    ['leaves inches alone', 'A 5" pipe and "a b c d" [4f2a9c01:3]', ['a b c d']],
    ['may precede an address', '"a b c d" https://example.org/.', ['a b c d']],
    ['may precede a link', '“a b c d” ([Title. The oak](https://example.org/oak_(tree))).', ['a b c d']],
    ['may be a link', '["a b c d"](https://example.org), <https://example.org/a?b=1,2>', ['a b c d', 'a b c d']],
    ['needs a known address', '"a b c d" https://example.org/other', []],
    [
      'leaves straight apostrophes alone',
      "The trees' age, the '90s oaks' and the '80s' \"a b c d\" [4f2a9c01:3]",
      ['a b c d'],
    ],
    ['may hold straight apostrophes', "It's 'a tree's b c' [4f2a9c01:3]", ["a tree's b c"]],
    ['does not end at an apostrophe', 'It’s ‘a tree’s b c’ [4f2a9c01:3]', ['a tree’s b c']],
  ];
  for (const [title, draft, quoted] of cases) it(title, () => expect(quotedIn(draft)).to.deep.equal(quoted));

  it('is found in linear time in a hostile draft of 400,000 characters', () => {
    for (const unit of [
      '"',
      '“',
      '„',
      '«',
      '»',
      '‚',
      '‘',
      '‘’a',
      "'",
      " 'a",
      "'a'b",
      '”',
      ' "a',
      '[4f2a9c01:3]',
      '"a b c d" [4f2a9c01:3] ',
      '.',
      '\n',
      '\n ',
      '[',
      '[a](',
      'https://',
      'https://example.org)',
      '(((',
      ' ”',
      'a. B',
      '"a b c d" ',
    ]) {
      const before = process.cpuUsage();
      expect(citationsIn(`${unit.repeat(400_000 / unit.length)} [4f2a9c01:3]`, URLS)).to.have.length.of.at.most(500);
      const { user } = process.cpuUsage(before);
      expect(user / 1000, unit).to.be.lessThan(1000);
    }
  });
});
