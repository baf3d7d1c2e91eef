/** The commands on a run as a process of their own. */
import { audit } from './audit.js';
import { runAsProcess } from './command-process.js';
import { exitOfError } from './exit-codes.js';

const words = process.argv.slice(2);

await runAsProcess(
  (here) => audit(words, here),
  // Else Node would end with 1, by which `verify` says that a record is not valid.
  (error) => exitOfError(error, words[0] === 'verify' ? 'verify' : null),
);
