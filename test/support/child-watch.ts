/** What the children of this process take, seen from outside, where the system tells (`/proc`); zeros where not. */
import { readdirSync, readFileSync } from 'node:fs';

export interface ChildWatch {
  /** Most resident memory any child had, in bytes. */
  mostMemoryBytes(): number;
  /** Most bytes any child caused to be written to the disk. */
  mostWrittenBytes(): number;
  stop(): void;
}

export function watchChildren(): ChildWatch {
  let [memory, written] = [0, 0];
  const timer = setInterval(() => {
    for (const pid of childPids()) {
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
