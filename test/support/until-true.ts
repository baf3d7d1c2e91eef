/** Resolves once a condition holds, which is looked at in every turn. */
export async function untilTrue(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve));
}
