/** Memory and writes of this process's children, read from `/proc`; zeros on systems without it. */
import { readdirSync, readFileSync } from 'node:fs';

export interface ChildWatch {
  /** Peak resident memory of a child in bytes. */
  mostMemoryBytes(): number;
  /** Most bytes that a child wrote to the disk. */
  mostWrittenBytes(): number;
  stop(): void;
}

/** Watches children that start from now on; earlier tests may have left some that are about to end. */
export function watchChildren(): ChildWatch {
  const earlier = new Set(childPids());
  let [memory, written] = [0, 0];
  const timer = setInterval(() => {
    for (const pid of childPids()) {
      if (earlier.has(pid)) continue;
      memory = Math.max(memory, numberIn(`/proc/${pid}/status`, /VmHWM:\s+(\d+)/) * 1024);
      written = Math.max(written, numberIn(`/proc/${pid}/io`, /^write_bytes: (\d+)/m));
    }
  }, 20);
  return { mostMemoryBytes: () => memory, mostWrittenBytes: () => written, stop: () => clearInterval(timer) };
}

/** Process ids of this process's children that are alive. */
export function childPids(parent = process.pid): readonly number[] {
  try {
    return readdirSync(`/proc/${parent}/task`).flatMap((task) =>
      readFileSync(`/proc/${parent}/task/${task}/children`, 'utf8').split(' ').filter(Boolean).map(Number),
    );
  } catch {
    return [];
  }
}

function numberIn(file: string, pattern: RegExp): number {
  try {
    return Number(pattern.exec(readFileSync(file, 'utf8'))?.[1] ?? 0);
  } catch {
    return 0;
  }
}
