import { expect } from 'chai';
import { citedPagesOf } from '../../src/audit/sources.js';
import { RUN_ID, given, graphWith, usedTool, wrote } from '../support/given.js';

const URL_OF_OAKS = 'https://example.org/oaks';
const DOCUMENT = 'a'.repeat(64);

describe('The pages that a draft cites', () => {
  type Hits = Parameters<typeof usedTool>[1];
  const citedIn = (hits: Hits, draft: string, pages: ReadonlyMap<number, string> | null = null) => {
    const { events } = given(graphWith([{ id: 'write' }], [])).whenAll(usedTool('write', hits), wrote('write', draft));
    return citedPagesOf(RUN_ID, {
      folded: async (_, fold) => await fold(eachOf(events)),
      pagesOf: () => Promise.resolve(pages),
      pause: () => Promise.resolve(),
    });
  };
  const hit = { url: URL_OF_OAKS, title: 'Oaks', score: null };

  it('of the web are judged by the text that the search returned', async () => {
    const found = await citedIn([{ ...hit, text: 'Oaks live for long.' }], `"Oaks live for long" ${URL_OF_OAKS}`);
    expect(found?.map(({ quotation }) => quotation)).to.deep.equal(['exact']);
  });

  it('of the web have no verdict in older events without this text', async () => {
    const found = await citedIn([hit], `"Oaks live for long" ${URL_OF_OAKS}`);
    expect(found?.map(({ quotation, citations }) => ({ quotation, citations }))).to.deep.equal([
      { quotation: null, citations: [{ quoted: 'Oaks live for long', quotation: null }] },
    ]);
  });

  it('are judged with the page after them, where the quotation runs over the end', async () => {
    const pages = new Map([
      [1, 'Some oaks live'],
      [2, 'for a very long time.'],
    ]);
    const cited = (page: number) =>
      citedIn([{ document: DOCUMENT, page, chunk: 0, score: 1 }], `"oaks live for a very" [aaaaaaaa:${page}]`, pages);
    for (const page of [1, 2]) expect((await cited(page))?.[0]?.quotation).to.equal('exact');
  });
});

async function* eachOf<T>(items: readonly T[]) {
  yield* items;
}
