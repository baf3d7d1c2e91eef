/** Stored views that are recreated empty, once, when their file is found damaged. */
import type { ViewsStore } from './views-store.js';

/** What the thread says of a call that met damage, or came before the loss was accepted. */
export const VIEWS_LOST = 'views lost';

export interface RenewableViews extends ViewsStore {
  /** The loss is known: calls are served again. Before, a checkpoint of the old rows could be written beside the new. */
  accept(): void;
  /** Recreates the views: the stored rows proved to belong to another log. @throws {Error} `VIEWS_LOST` */
  discard(): never;
}

/** @param begin makes an empty file in place of the damaged one */
export function renewableViews(first: ViewsStore, begin: () => ViewsStore): RenewableViews {
  let store = first;
  let isRenewed = false;
  let isLost = false;
  const renew = (): void => {
    isLost = true;
    if (isRenewed) return;
    isRenewed = true;
    close(store);
    store = begin();
  };
  const call = <Given extends readonly unknown[], T>(of: (store: ViewsStore) => (...given: Given) => T) => {
    return (...given: Given): T => {
      if (isLost) throw new Error(VIEWS_LOST);
      try {
        return of(store)(...given);
      } catch (error) {
        if (!isDamage(error)) throw error;
        renew();
        throw new Error(VIEWS_LOST, { cause: error });
      }
    };
  };
  return {
    get checkpoint() {
      return store.checkpoint;
    },
    accept() {
      isLost = false;
    },
    discard() {
      renew();
      throw new Error(VIEWS_LOST);
    },
    write: call((each) => each.write),
    find: call((each) => each.find),
    list: call((each) => each.list),
    count: call((each) => each.count),
    unfinished: call((each) => each.unfinished),
    paused: call((each) => each.paused),
    deadlines: call((each) => each.deadlines),
    blueprintIds: call((each) => each.blueprintIds),
    blueprintRecords: call((each) => each.blueprintRecords),
    documents: call((each) => each.documents),
    document: call((each) => each.document),
    corruptRuns: call((each) => each.corruptRuns),
    saveCorrupt: call((each) => each.saveCorrupt),
    removeCorrupt: call((each) => each.removeCorrupt),
    close: () => store.close(),
  };
}

/** The stored rows; if the rows read at a start are damaged, an empty new file. */
export function readableViews(open: () => ViewsStore, begin: () => ViewsStore): ViewsStore {
  try {
    const store = open();
    store.corruptRuns();
    store.unfinished();
    store.documents({ limit: 1, offset: 0 });
    return store;
  } catch (error) {
    if (!isDamage(error)) throw error;
    return begin();
  }
}

/** What SQLite says of a file that is not as it left it. */
function isDamage(error: unknown): boolean {
  return error instanceof Error && /malformed|not a database|no such (table|column)|disk I\/O/.test(error.message);
}

function close(store: ViewsStore): void {
  try {
    store.close();
  } catch {
    // It is damaged.
  }
}
