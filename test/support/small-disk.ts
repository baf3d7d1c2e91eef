/** A small disk that a test can fill: a file system in memory, which needs root on Linux. */
import { spawnSync } from 'node:child_process';
import { closeSync, openSync, rmSync, truncateSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { TempDir } from './temp-dir.js';
import { tempDir } from './temp-dir.js';

export interface SmallDisk {
  readonly path: string;
  /** Fills the disk except this many bytes, rounded to a page. */
  fill(freeBytes?: number): void;
  /** Removes the filling. */
  clear(): void;
  /** Unmounts the disk; a process with open files there keeps them. */
  remove(): void;
}

/** Defines tests that need such disks, or prints a line if none can be created. */
export function onSmallDisks(define: () => void): void {
  if (isMounted(tempDir(), 4096)) define();
  else process.stderr.write('Not tried here: what a full disk does (only root may mount one)\n');
}

export function smallDisk(bytes: number): SmallDisk {
  const dir = tempDir();
  if (!isMounted(dir, bytes, true)) throw new Error(`Cannot mount a disk at "${dir.path}"`);
  const ballast = join(dir.path, 'ballast');
  return {
    path: dir.path,
    fill(freeBytes = 0) {
      truncateSync(ballast, Math.max(0, filled(ballast) - freeBytes));
    },
    clear: () => rmSync(ballast, { force: true }),
    remove() {
      spawnSync('umount', ['--lazy', dir.path]);
      dir.remove();
    },
  };
}

/** @param stays whether the disk stays mounted; if not, this is only a test */
function isMounted(dir: TempDir, bytes: number, stays = false): boolean {
  const options = ['-t', 'tmpfs', '-o', `size=${bytes}`, 'tmpfs', dir.path];
  const isThere = process.platform === 'linux' && spawnSync('mount', options).status === 0;
  if (stays && isThere) return true;
  if (isThere) spawnSync('umount', [dir.path]);
  dir.remove();
  return isThere;
}

/** Writes until the disk is full. Returns the number of bytes. */
function filled(path: string): number {
  const file = openSync(path, 'w');
  const page = Buffer.alloc(4096, 1);
  let bytes = 0;
  try {
    for (;;) bytes += writeSync(file, page);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOSPC')) throw error;
    return bytes;
  } finally {
    closeSync(file);
  }
}
