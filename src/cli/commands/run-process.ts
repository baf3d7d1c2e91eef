/** `council run` as a process of its own: its streams, its signals, its exit code. */
import { nodeSystem } from '../../system/system.js';
import { onSignals } from '../../system/signals.js';
import { EXIT_FAILED, runCommand } from './run.js';

const { env, stdin, stdout, stderr } = process;
const cancelled = new AbortController();
const endFailed = (): never => process.exit(EXIT_FAILED);
onSignals(nodeSystem(), () => cancelled.abort(), endFailed);
// Without a reader the run goes on; a failed write is reported where it happens.
for (const stream of [stdout, stderr]) stream.on('error', () => undefined);
const here = { env, stdin, stdout, stderr, cancelled: cancelled.signal, endFailed };
process.exitCode = await runCommand(process.argv.slice(3), here);
