/** The saved councils as a list. */
import type { History } from './run-history.js';
import type { ReadDeps } from './read-up-to-date.js';
import { readUpToDate, whileFolded } from './read-up-to-date.js';
import type { Page } from './run-summary.js';

export interface BlueprintListDeps extends ReadDeps {
  readonly history: Pick<History, 'blueprintIds' | 'blueprintRecords'>;
}

/**
 * Asks for a page of them, newest update first, ties by id ascending; everything recorded before the call is in it. The
 * records come as JSON texts, some at a time, read as they are consumed: one deleted by then is left out.
 */
export type BlueprintList = (page: Page) => Promise<BlueprintPage>;

export interface BlueprintPage {
  readonly records: AsyncIterable<readonly string[]>;
  /** Whether others follow. */
  readonly hasMore: boolean;
}

export function blueprintList(deps: BlueprintListDeps): BlueprintList {
  const { history } = deps;
  return async (page) => {
    const { limit } = page;
    const { rebuilds } = deps.projector;
    const ids = await readUpToDate(deps, () => history.blueprintIds({ ...page, limit: limit + 1 }));
    return { records: recordsOf(ids.slice(0, limit), rebuilds, deps), hasMore: ids.length > limit };
  };
}

/** Most ids per query of the stored views, which answer with one chunk of records. */
const IDS_AT_ONCE = 100;

async function* recordsOf(
  ids: readonly string[],
  rebuilds: number,
  deps: BlueprintListDeps,
): AsyncGenerator<readonly string[]> {
  for (let at = 0; at < ids.length;) {
    const next = ids.slice(at, at + IDS_AT_ONCE);
    const records = await whileFolded(deps, rebuilds, () => deps.history.blueprintRecords(next));
    at += records.length;
    yield records.filter((record) => record !== null);
  }
}
