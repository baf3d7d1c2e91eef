/**
 * Has a test run, and what it starts, keep its files in memory where Linux offers room: to sync a disk is most of what an
 * append costs, and a killed process loses nothing of either. TMPDIR names another place; the soak, which needs more room,
 * and the benchmarks stay on the disk.
 */
import { accessSync, constants, statfsSync } from 'node:fs';

const MEMORY = '/dev/shm';
/** Bytes that must be free: a container may have little. */
const ROOM = 2 ** 31;

if (process.env['SOAK'] === undefined && hasRoom(MEMORY)) process.env['TMPDIR'] ??= MEMORY;

function hasRoom(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK | constants.X_OK);
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize >= ROOM;
  } catch {
    return false;
  }
}
