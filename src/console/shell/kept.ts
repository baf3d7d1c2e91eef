/** What this browser keeps for a person, by name. A browser that keeps nothing, or has no room, is no fault. */

/** Null: nothing is kept under the name. */
export function kept(name: string): unknown {
  try {
    return JSON.parse(window.localStorage.getItem(name) ?? 'null');
  } catch {
    return null;
  }
}

/** The items of a kept list that are what they should be. */
export function keptList<Item>(name: string, isItem: (value: unknown) => value is Item): readonly Item[] {
  const list = kept(name);
  return Array.isArray(list) ? list.filter(isItem) : [];
}

export function keep(name: string, value: unknown): void {
  try {
    window.localStorage.setItem(name, JSON.stringify(value));
  } catch {
    // What is kept is a comfort: it is had until the page is left.
  }
}
