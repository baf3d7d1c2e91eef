#!/usr/bin/env node
/** The `council` command. In a checkout it builds `dist` first; an installed package has no sources to build. */
import { existsSync } from 'node:fs';

const builder = new URL('../build.mjs', import.meta.url);
try {
  if (existsSync(builder)) await (await import(builder.href)).build();
  await import('../../dist/src/cli/main.js');
} catch (fault) {
  process.stderr.write(`${fault.stack}\n`);
  // `verify` exits 1 for a record that is not valid, so an error of the program exits 2.
  process.exitCode = process.argv[2] === 'verify' ? 2 : 1;
}
