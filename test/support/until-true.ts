/** Turns in which a condition is looked at at once; what takes longer waits for others, who need the processor. */
const TURNS = 50;
const PAUSE_MS = 5;
/** A look that takes longer asks somebody, who needs the processor too: it is repeated after three times as long. */
const QUICK_MS = 1;
const REST = 3;

/** Resolves once a condition holds: looked at in every turn first if that is quick, then every few milliseconds. */
export async function untilTrue(condition: () => boolean | Promise<boolean>): Promise<void> {
  for (let turn = 0; ; turn += 1) {
    const fromMs = performance.now();
    if (await condition()) return;
    const tookMs = performance.now() - fromMs;
    await new Promise<void>((resolve) => {
      if (turn < TURNS && tookMs < QUICK_MS) setImmediate(resolve);
      else setTimeout(resolve, Math.max(PAUSE_MS, REST * tookMs));
    });
  }
}
