import { expect } from 'chai';
import { citedSources, markOf, sourcesAt, withCitations } from '../../src/draft/sources.js';
import type { Source } from '../../src/draft/sources.js';
import { goldenRecords } from '../support/console-records.js';

const [ONE, OTHER] = ['4f2a9c01'.padEnd(64, '0'), 'ABCDEF99'.padEnd(64, '1')];
const page = (document: string, number: number): Source => ({
  kind: 'document',
  document,
  page: number,
  chunk: 0,
  readBy: ['scout'],
});
const WEB: Source = { kind: 'web', url: 'https://example.org/sea', title: 'The sea', readBy: ['scout'] };

describe('The sources of a run', () => {
  it('are the pages that its tools found up to an event, each once', () => {
    for (const [name, events] of goldenRecords()) {
      const hits = events.flatMap(({ type, data }) => (type === 'ToolCalled' ? data.hits : []));
      const keys = hits.map((hit) => ('document' in hit ? markOf(hit) : hit.url));
      const found = sourcesAt(events, events.length - 1).map((each) => (each.kind === 'web' ? each.url : markOf(each)));
      expect(found, name).to.deep.equal([...new Set(keys)]);
      expect(sourcesAt(events, 0), name).to.deep.equal([]);
    }
  });

  it('are cited by marks and addresses, in the order of the draft', () => {
    const draft = 'B [abcdef99:2]. A [4f2a9c01:3, abcdef99:7]; see https://example.org/sea, not [4f2a9c01:4].';
    const sources = [page(ONE, 3), WEB, page(OTHER, 2), page(OTHER, 9)];
    expect(citedSources(draft, sources)).to.deep.equal([page(OTHER, 2), page(ONE, 3), WEB]);
    expect(citedSources('None [here:1]', sources)).to.deep.equal([]);
  });

  it('replace known marks in a draft; unknown marks, code and links stay as they are', () => {
    const citation = { number: 1, title: 'Source 1', href: '/page' };
    const cite = { tag: 'cite', children: ['[1]'], title: 'Source 1', href: '/page' };
    const marks = new Map([['4f2a9c01:3', citation]]);
    const said = (text: string) => withCitations([{ tag: 'p', children: [text] }], marks)[0];
    expect(said('A [4f2a9c01:3] b')).to.deep.equal({ tag: 'p', children: ['A ', cite, ' b'] });
    expect(said('[4f2a9c01: 3]')).to.deep.equal({ tag: 'p', children: [cite] });
    for (const text of ['[4f2a9c01:4]', '[4f2a9c01:3, 4f2a9c01:4]', '4f2a9c01:3', '[x]']) {
      expect(said(text)).to.deep.equal({ tag: 'p', children: [text] });
    }
    const code = { tag: 'code', children: ['[4f2a9c01:3]'] } as const;
    expect(withCitations([code], marks)).to.deep.equal([code]);
  });
});
