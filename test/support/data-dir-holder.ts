/**
 * A process that holds a data directory until it is killed: `node data-dir-holder.js PATH`. Prints `held`, or the
 * error.
 */
import { hostname } from 'node:os';
import { argv, pid, stdout } from 'node:process';
import { nodeSystem } from '../../src/system/system.js';
import { openDataDirectory } from '../../src/app/data-directory.js';

try {
  const dataDir = openDataDirectory(argv[2] ?? '', { pid, hostname: hostname(), startedAt: nodeSystem().now() });
  stdout.write('held\n');
  // Keeps the process alive, and the lock from being collected.
  setInterval(() => dataDir.path, 60_000);
} catch (error) {
  stdout.write(`${error instanceof Error ? error.message : String(error)}\n`);
}
