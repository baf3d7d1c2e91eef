/** The address on a service's ready line. */
import type { Child } from './child.js';

export const READY_LINE = /^listening on (http:\S+)$/;

/** Resolves with the address that a service process prints; rejects if the process ends before. */
export async function addressOf(child: Pick<Child, 'lines' | 'waitFor'>): Promise<string> {
  const found = (lines: readonly string[]): string | undefined =>
    lines.map((line) => READY_LINE.exec(line)?.[1]).find((url) => url !== undefined);
  await child.waitFor((lines) => found(lines) !== undefined);
  return found(child.lines) ?? '';
}
