/** Turns in which a condition is looked at at once; what takes longer waits for others, who need the processor. */
const TURNS = 50;
const PAUSE_MS = 5;

/** Resolves once a condition holds: looked at in every turn first, then every few milliseconds. */
export async function untilTrue(condition: () => boolean | Promise<boolean>): Promise<void> {
  for (let turn = 0; !(await condition()); turn += 1) {
    await new Promise<void>((resolve) => {
      if (turn < TURNS) setImmediate(resolve);
      else setTimeout(resolve, PAUSE_MS);
    });
  }
}
