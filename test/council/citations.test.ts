import { expect } from 'chai';
import { unknownMarks, withSources } from '../../src/council/citations.js';

const ID = '4f2a9c01'.padEnd(64, '0');
const hit = (page: number, document = ID) => ({ document, page, chunk: page, score: 1 });
const given = withSources([], [hit(3), hit(4), hit(3)]);

describe('Citation marks', () => {
  it('are known after a tool has returned the page, each page once', () => {
    expect(given).to.deep.equal(['4f2a9c01:3', '4f2a9c01:4']);
    expect(withSources(given, [hit(4)])).to.equal(given);
    expect(withSources(given, [{ url: 'https://example.org/', title: '', score: null }])).to.equal(given);
  });

  const texts: readonly [title: string, draft: string, unknown: readonly string[]][] = [
    ['a known mark', 'So it is [4f2a9c01:3].', []],
    ['several in one pair of brackets', 'So [4f2a9c01:3, 4f2a9c01:4; 4f2a9c01:5].', ['4f2a9c01:5']],
    ['another page of a known document', '[4f2a9c01:5]', ['4f2a9c01:5']],
    ['another document', '[deadbeef:3]', ['deadbeef:3']],
    ['capitals, a blank and more of the id', '[4F2A9C01: 3] [4f2a9c010000:4]', []],
    ['a file name, which is no mark', '[report.pdf:3]', ['report.pdf:3']],
    ['the same unknown mark twice', '[deadbeef:3] [deadbeef:3]', ['deadbeef:3']],
    ['other things in brackets', '[x] [1] [see: 3] [text](http://x:80) [12:30] [[4f2a9c01:3]]', []],
  ];
  for (const [title, draft, unknown] of texts) {
    it(`in a draft are looked up among the known pages: ${title}`, () => {
      expect(unknownMarks(draft, given)).to.deep.equal({ unknownCitations: unknown });
    });
  }

  it('that are unknown are listed up to fifty', () => {
    const draft = Array.from({ length: 80 }, (_, page) => `[deadbeef:${page}]`).join(' ');
    expect(unknownMarks(draft, given).unknownCitations).to.have.length(50);
  });

  it('are not checked when there are too many pages to keep', () => {
    const many = Array.from({ length: 4097 }, (_, page) => hit(page));
    const sources = withSources(given, many);
    expect(sources).to.equal(null);
    expect(withSources(sources, [hit(1)])).to.equal(null);
    expect(unknownMarks('[deadbeef:3]', sources)).to.deep.equal({});
  });

  it('are found in linear time in a text of brackets', () => {
    expect(unknownMarks('['.repeat(120_000) + 'a'.repeat(1000), given)).to.deep.equal({ unknownCitations: [] });
  });
});
