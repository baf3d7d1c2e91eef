import type { Page } from '../projections/run-summary.js';

/** Ids on one page. */
const PAGE = 100;

/** The ids of a list, page by page. */
export async function* listedIds(idsOf: (page: Page) => Promise<readonly string[]>): AsyncGenerator<string> {
  for (let offset = 0; ; offset += PAGE) {
    const ids = await idsOf({ limit: PAGE, offset });
    yield* ids;
    if (ids.length < PAGE) return;
  }
}
