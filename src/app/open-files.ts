/** How many files, connections among them, this process may have open at a time. */
import { readFileSync } from 'node:fs';

/** The soft limit (`ulimit -n`); null where it is not known, or there is none. */
export function maxOpenFiles(): number | null {
  try {
    const [, soft] = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return soft === undefined ? null : Number(soft);
  } catch {
    // Only Linux reports the limit in a file.
    return null;
  }
}
