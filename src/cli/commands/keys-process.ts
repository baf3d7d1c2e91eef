/** `council keys` as a process of its own. */
import { runAsProcess } from './command-process.js';
import { exitOfError } from './exit-codes.js';
import { keys } from './keys.js';

await runAsProcess(
  (here) => keys(process.argv.slice(3), here),
  (error) => exitOfError(error, null),
);
