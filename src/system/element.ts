/**
 * The element at an index that the caller knows to exist; a negative index counts from the end.
 *
 * @throws {RangeError} there is none, which is a bug that a default value would hide
 */
export function elementAt<T>(list: readonly T[], at: number): T {
  const element = list.at(at);
  if (element === undefined) throw new RangeError(`A list of ${list.length} has no element ${at}`);
  return element;
}

/** A value that the caller knows to exist. @throws {TypeError} naming what is missing */
export function present<T>(value: T | null | undefined, what: string): T {
  if (value === null || value === undefined) throw new TypeError(`There is no ${what}`);
  return value;
}

/** Whether a text from outside is a key of a table. */
export function isKeyOf<T extends object>(table: T, text: PropertyKey): text is keyof T {
  return Object.hasOwn(table, text);
}
