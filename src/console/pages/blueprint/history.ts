/** Edits that can be taken back: what was, what is, and what was taken back. */

export interface History<T> {
  readonly past: readonly T[];
  readonly present: T;
  readonly future: readonly T[];
  /** The last edit goes on with an edit of the same name, as the letters of a word do; null: it is finished. */
  readonly open: string | null;
}

const MOST_PAST = 500;

export function historyOf<T extends object>(present: T): History<T> {
  return { past: [], present, future: [], open: null };
}

/** @param name edits of one name that follow each other are taken back together; null: it stands alone */
export function edited<T>(history: History<T>, present: T, name: string | null = null): History<T> {
  if (present === history.present) return history;
  const goesOn = name !== null && name === history.open;
  const past = goesOn ? history.past : [...history.past, history.present].slice(-MOST_PAST);
  return { past, present, future: [], open: name };
}

/** What comes next is an edit of its own. */
export function sealed<T>(history: History<T>): History<T> {
  return history.open === null ? history : { ...history, open: null };
}

export function undone<T extends object>(history: History<T>): History<T> {
  const before = history.past.at(-1);
  return before === undefined
    ? history
    : { past: history.past.slice(0, -1), present: before, future: [history.present, ...history.future], open: null };
}

export function redone<T extends object>(history: History<T>): History<T> {
  const [after, ...future] = history.future;
  return after === undefined
    ? history
    : { past: [...history.past, history.present], present: after, future, open: null };
}
