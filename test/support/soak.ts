/** Whether `npm run soak` runs. It plays each test with its full set; `npm test` plays one example of each kind. */
export const IS_SOAK = process.env['SOAK'] !== undefined;

/** A test that only a soak runs, because `npm test` has a cheaper test of the same mechanism. */
export function soakIt(title: string, test: Mocha.AsyncFunc | Mocha.Func): void {
  if (IS_SOAK) it(title, test);
}

/** All cases in a soak, otherwise the first `most`. */
export function sample<T>(all: readonly T[], most: number): readonly T[] {
  return IS_SOAK ? all : all.slice(0, most);
}
