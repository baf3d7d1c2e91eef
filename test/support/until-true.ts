import { setTimeout as delay } from 'node:timers/promises';

const PAUSE_MS = 5;

/** Resolves when a condition holds, which is checked every few milliseconds. */
export async function untilTrue(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await delay(PAUSE_MS);
}
