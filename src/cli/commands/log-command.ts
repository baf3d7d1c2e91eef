/** Shared by the commands on the log of a stopped service. */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { readConfig } from '../../config.js';
import { ConfigInvalid, CouncilError } from '../../errors.js';
import { printable } from '../terminal/printer.js';
import { exitOfError } from './exit-codes.js';

/** The folder that holds the embedded log. @throws {ConfigInvalid} there is none, or the log is on a server */
export function folderOfLog(): string {
  const { dataDir, eventStore } = readConfig(process.env);
  if (eventStore !== null) {
    const accepted = 'nothing: the log of a server is checked by its own means';
    throw new ConfigInvalid({ variable: 'EVENTSTORE_URL', value: '(set)', accepted });
  }
  if (!existsSync(dataDir)) throw new ConfigInvalid({ variable: 'DATA_DIR', value: dataDir, accepted: 'a folder' });
  return resolve(dataDir);
}

/** Prints a line on standard output. */
export function say(text: string): void {
  process.stdout.write(`${printable(text)}\n`);
}

/** Runs a command; it ends with its exit code, or that of its error. */
export function runToItsEnd(command: () => Promise<number>): void {
  command().then(
    (code) => (process.exitCode = code),
    (error: unknown) => {
      const text =
        error instanceof Error ? (error instanceof CouncilError ? error.message : (error.stack ?? '')) : String(error);
      process.stderr.write(`${printable(text)}\n`);
      process.exitCode = exitOfError(error, null);
    },
  );
}
