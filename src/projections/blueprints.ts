/** The saved councils as a list. */
import type { History } from './run-history.js';
import type { ReadDeps } from './read-up-to-date.js';
import { readUpToDate } from './read-up-to-date.js';
import type { Page } from './run-summary.js';

export interface BlueprintListDeps extends ReadDeps {
  readonly history: Pick<History, 'blueprintIds' | 'blueprintRecords'>;
}

/**
 * Returns a page, newest update first, ties by id ascending, with everything recorded before the call. Reads the
 * records as JSON texts, a few at a time, when the caller takes them, and omits those that are deleted meanwhile.
 */
export type BlueprintList = (page: Page) => Promise<BlueprintPage>;

export interface BlueprintPage {
  readonly records: AsyncIterable<readonly string[]>;
  /** Whether another page follows. */
  readonly hasMore: boolean;
}

export function blueprintList(deps: BlueprintListDeps): BlueprintList {
  return async ({ limit, offset }) => {
    const ids = await readUpToDate(deps, () => deps.history.blueprintIds({ offset, limit: limit + 1 }));
    return { records: recordsOf(ids.slice(0, limit), deps), hasMore: ids.length > limit };
  };
}

/** Largest number of ids per query of the stored views, which return one chunk of records. */
const IDS_AT_ONCE = 100;

async function* recordsOf(ids: readonly string[], deps: BlueprintListDeps): AsyncGenerator<readonly string[]> {
  for (let at = 0; at < ids.length;) {
    const next = ids.slice(at, at + IDS_AT_ONCE);
    const records = await readUpToDate(deps, () => deps.history.blueprintRecords(next));
    at += records.length;
    yield records.filter((record) => record !== null);
  }
}
