/** `council events`, `tail`, `state`, `diff`, `verify`, `fork` and `export`: environment, signals, exit code. */
import { systemAmbient } from '../../ambient.js';
import { readConfig } from '../../config.js';
import { CouncilError, DataDirHeld } from '../../errors.js';
import { openSchemas } from '../../http/schema.js';
import { LogUnreadable } from '../../log/unreadable.js';
import { chartCache } from '../../run/charts.js';
import { onSignals } from '../../signals.js';
import { printable } from '../printable.js';
import { UsageFault } from '../usage.js';
import { perform } from './commands.js';
import { EXIT, exitOfError } from './exit-codes.js';
import { bytesIn } from './files.js';
import { folderRecords } from './folder-records.js';
import { ForkUnknown } from './fork-run.js';
import { paintFor } from './paint.js';
import { printerOn, ReaderGone } from './printer.js';
import type { RunRecords } from './record.js';
import { serviceRecords } from './service-records.js';
import type { Surroundings } from './surroundings.js';
import type { Command, Wish } from './usage.js';
import { readWish, USAGE } from './usage.js';

async function main(words: readonly string[]): Promise<number> {
  let command: Command | null = words[0] === 'verify' ? 'verify' : null;
  const stopping = new AbortController();
  const ambient = systemAmbient();
  onSignals(
    ambient,
    () => stopping.abort(),
    () => process.exit(EXIT.interrupted),
  );
  // Of itself Node would end with 1, which of verify means that a record is not valid.
  process.on('uncaughtException', (error) => {
    tell(messageOf(error));
    process.exit(exitOfError(error, command));
  });
  // What is lost by a reader's going away is told where it is written.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
  try {
    const wish = readWish(words);
    if (wish === null) {
      process.stdout.write(`${USAGE}\n`);
      return EXIT.done;
    }
    command = wish.command;
    const code = await perform(wish, surroundings(wish, stopping.signal));
    return stopping.signal.aborted ? EXIT.interrupted : code;
  } catch (error) {
    if (error instanceof ReaderGone) return EXIT.done;
    const isStopped = stopping.signal.aborted;
    // What is given up at the user's wish is no fault, but may have begun.
    if (!isStopped || error instanceof ForkUnknown) tell(messageOf(error));
    return isStopped ? EXIT.interrupted : exitOfError(error, command);
  }
}

function surroundings(wish: Wish, signal: AbortSignal): Surroundings {
  const ambient = systemAmbient();
  const isTerminal = process.stdout.isTTY;
  const means = { charts: chartCache(), sha256: ambient.sha256 };
  const service = (url: string) => serviceRecords(url, { ambient, schemas: openSchemas(), tell, signal });
  const records = (): RunRecords =>
    wish.url === null ? folderRecords(dataDirOf(process.env), means) : service(wish.url);
  const { NO_COLOR: noColor, TERM: term } = process.env;
  return {
    ...{ records, service, means, signal, isTerminal, tell },
    bytesOf: (file) => bytesIn(file, process.stdin),
    print: printerOn(process.stdout),
    paint: paintFor({ isTerminal, noColor, term }),
    columns: isTerminal ? process.stdout.columns : null,
    uuid: ambient.uuid,
  };
}

/** @throws {LogUnreadable} when the record is not kept there */
function dataDirOf(environment: NodeJS.ProcessEnv): string {
  const { dataDir, eventStore } = readConfig(environment);
  if (eventStore === null) return dataDir;
  throw new LogUnreadable({ file: dataDir, reason: 'the record is kept by the server that EVENTSTORE_URL names' });
}

function tell(text: string): void {
  process.stderr.write(`${printable(text)}\n`);
}

function messageOf(error: unknown): string {
  if (error instanceof UsageFault) return `${error.message}\n\n${USAGE}`;
  if (!(error instanceof CouncilError)) return error instanceof Error ? (error.stack ?? '') : String(error);
  const isHere = error instanceof DataDirHeld || error instanceof LogUnreadable;
  return isHere ? `${error.message}; ask a running service with --url http://HOST:PORT` : error.message;
}

process.exitCode = await main(process.argv.slice(2));
