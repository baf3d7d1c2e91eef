/** Undo and redo. */

export interface History<T> {
  readonly past: readonly T[];
  readonly present: T;
  readonly future: readonly T[];
  /** The name of the last edit, which the next edit of that name extends, or null if it has ended. */
  readonly open: string | null;
}

const MOST_PAST = 500;

export function historyOf<T extends object>(present: T): History<T> {
  return { past: [], present, future: [], open: null };
}

/** @param name undo reverts consecutive edits of one name together; null for a single edit */
export function edited<T>(history: History<T>, present: T, name: string | null = null): History<T> {
  if (present === history.present) return history;
  const isExtended = name !== null && name === history.open;
  const past = isExtended ? history.past : [...history.past, history.present].slice(-MOST_PAST);
  return { past, present, future: [], open: name };
}

/** Ends the last edit: the next one starts a new undo step. */
export function ended<T>(history: History<T>): History<T> {
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
