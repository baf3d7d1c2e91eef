#!/usr/bin/env node
/** The `council` command in a checkout: works in a fresh clone, because it builds when dist is stale. */
import { makeConsoleLater, transpile } from '../build.mjs';

const words = process.argv.slice(2);
try {
  await transpile(['src']);
  if (words.join(' ') === 'serve') makeConsoleLater();
  await import('../../dist/src/cli/main.js');
} catch (fault) {
  process.stderr.write(`${fault.stack}\n`);
  // Of verify 1 would mean that a record is not valid.
  process.exitCode = words[0] === 'verify' ? 2 : 1;
}
