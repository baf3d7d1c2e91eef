/** The commands on a run as a process of their own: its streams, its signals, its exit code. */
import { onSignals } from '../../system/signals.js';
import { nodeSystem } from '../../system/system.js';
import { printable } from '../terminal/printer.js';
import { audit, messageOf } from './audit.js';
import { EXIT, exitOfError } from './exit-codes.js';

const words = process.argv.slice(2);
const stopping = new AbortController();
const complain = (text: string): void => void process.stderr.write(text);

onSignals(
  nodeSystem(),
  () => stopping.abort(),
  () => process.exit(EXIT.interrupted),
);
// Of itself Node would end with 1, which of verify means that a record is not valid.
process.on('uncaughtException', (error) => {
  complain(`${printable(messageOf(error))}\n`);
  process.exit(exitOfError(error, words[0] === 'verify' ? 'verify' : null));
});
// A failed write is reported where it happens.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);

const { env, stdin, stdout } = process;
process.exitCode = await audit(words, { env, stdin, stdout, complain, signal: stopping.signal });
