/** `council events`, `tail`, `state`, `diff`, `verify`, `fork` and `export`: environment, signals, exit code. */
import { nodeSystem } from '../../system/system.js';
import { readConfig } from '../../config.js';
import { CouncilError, DataDirHeld } from '../../errors.js';
import { openSchemas } from '../../api/schemas.js';
import { LogUnreadable } from '../../eventlog/port.js';
import { machineCache } from '../../run/machine.js';
import { onSignals } from '../../system/signals.js';
import { printable, printableJson } from '../terminal/printable.js';
import { UsageFault } from './run-request.js';
import { EXIT, exitOfError, exitOfVerification } from './exit-codes.js';
import { bytesIn, writeWhole } from '../records/files.js';
import { folderRecords } from '../records/folder-records.js';
import { ForkUnknown, forkRun } from './fork.js';
import { ReaderGone, stylerFor, printerOn } from '../terminal/printer.js';
import type { RunRecords } from '../records/record.js';
import { isTerminal } from '../records/record.js';
import { serviceRecords } from '../records/service-records.js';
import type { Command, AuditDeps, AuditCommand } from './audit-usage.js';
import { USAGE, parseCommand } from './audit-usage.js';
import { exportLine, readExport } from '../../audit/export.js';
import { eventLine } from '../terminal/event-line.js';
import type { VerificationResult } from '../records/verification-result.js';
import { verificationJson, verificationText } from '../records/verification-result.js';
import { linesIn } from '../records/export-lines.js';
import { diffText, stateDiff, stateText } from '../terminal/state-diff.js';
import { verifyExport } from './verify-export.js';

/** Characters of lines that are gathered before they are written. */
const PAGE_CHARS = 64 * 1024;

async function main(words: readonly string[]): Promise<number> {
  let command: Command | null = words[0] === 'verify' ? 'verify' : null;
  const stopping = new AbortController();
  const system = nodeSystem();
  onSignals(
    system,
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
    const wish = parseCommand(words);
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

function surroundings(wish: AuditCommand, signal: AbortSignal): AuditDeps {
  const system = nodeSystem();
  const isTerminal = process.stdout.isTTY;
  const means = { machines: machineCache(), sha256: system.sha256 };
  const service = (url: string) => serviceRecords(url, { system, schemas: openSchemas(), tell, signal });
  const records = (): RunRecords =>
    wish.url === null ? folderRecords(dataDirOf(process.env), means) : service(wish.url);
  const { NO_COLOR: noColor, TERM: term } = process.env;
  return {
    ...{ records, service, means, signal, isTerminal, tell },
    bytesOf: (file) => bytesIn(file, process.stdin),
    print: printerOn(process.stdout),
    paint: stylerFor({ isTerminal, noColor, term }),
    columns: isTerminal ? process.stdout.columns : null,
    uuid: system.uuid,
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

// What each command does with the records it is given; resolves with its exit code.

async function perform(wish: AuditCommand, around: AuditDeps): Promise<number> {
  if (wish.command === 'verify' && wish.isFile) return await verifyFile(wish, around);
  if (wish.command === 'fork') return await forkRun(wish, around);
  const records = around.records();
  try {
    return await performOn(records, wish, around);
  } finally {
    records.close();
  }
}

type RecordWish = Exclude<AuditCommand, { readonly command: 'fork' }>;

async function performOn(records: RunRecords, wish: RecordWish, around: AuditDeps): Promise<number> {
  switch (wish.command) {
    case 'events':
      return await listEvents(records, wish, around);
    case 'tail':
      return await tail(records, wish, around);
    case 'state': {
      const run = await records.state(wish.run, wish.at);
      return await show(wish.isJson ? run : stateText(run, around.paint), around);
    }
    case 'diff': {
      const from = await records.state(wish.run, wish.from);
      const diff = stateDiff(from, await records.state(wish.other, wish.to));
      return await show(wish.isJson ? diff : diffText(diff, around.paint), around);
    }
    case 'verify':
      return await showFinding(await records.verify(wish.subject, wish.head), wish, around);
    case 'export':
      return await exportRun(records, wish, around);
    default:
      return wish satisfies never;
  }
}

/** Text as it is made for readers, or a value as JSON. */
async function show(content: string | object, { print, isTerminal: isOnTerminal }: AuditDeps): Promise<number> {
  if (typeof content === 'string') await print(content);
  else {
    const json = JSON.stringify(content);
    await print(`${isOnTerminal ? printableJson(json) : json}\n`);
  }
  return EXIT.done;
}

async function showFinding(
  finding: VerificationResult,
  { isJson }: { readonly isJson: boolean },
  around: AuditDeps,
): Promise<number> {
  try {
    await show(isJson ? verificationJson(finding) : verificationText(finding, around.paint), around);
  } catch (error) {
    // The exit code tells it all the same.
    if (!(error instanceof ReaderGone)) throw error;
  }
  return exitOfVerification(finding);
}

type EventsWish = Extract<AuditCommand, { readonly command: 'events' | 'tail' }>;

async function listEvents(records: RunRecords, { run, isJson }: EventsWish, around: AuditDeps): Promise<number> {
  if (isJson) return await printExport(records, run, around);
  const { paint, columns, print } = around;
  let page = '';
  for await (const event of readExport(run, linesIn(records.export(run), run))) {
    page += `${eventLine(event, paint, columns)}\n`;
    if (page.length < PAGE_CHARS) continue;
    await print(page);
    page = '';
  }
  await print(page);
  return EXIT.done;
}

async function tail(records: RunRecords, { run, isJson }: EventsWish, around: AuditDeps): Promise<number> {
  const { paint, columns, print, tell } = around;
  let isOver = false;
  for await (const event of records.follow(run)) {
    isOver = isTerminal(event);
    if (isJson) await print(jsonLine(exportLine(event), around));
    else await print(`${eventLine(event, paint, columns)}\n`);
  }
  if (!isOver && !around.signal.aborted) tell('The run has not ended: nobody runs it here');
  return EXIT.done;
}

function jsonLine(line: string, { isTerminal: isOnTerminal }: AuditDeps): string {
  return `${isOnTerminal ? printableJson(line) : line}\n`;
}

/** Byte for byte; a terminal is given the same values in characters that it can be trusted with. */
async function printExport(records: RunRecords, run: string, around: AuditDeps): Promise<number> {
  if (around.isTerminal) {
    for await (const line of linesIn(records.export(run), run)) await around.print(jsonLine(line, around));
  } else for await (const piece of records.export(run)) await around.print(piece);
  return EXIT.done;
}

async function exportRun(
  records: RunRecords,
  { run, out }: Extract<AuditCommand, { readonly command: 'export' }>,
  around: AuditDeps,
): Promise<number> {
  if (out === null) return await printExport(records, run, around);
  await writeWhole(out, records.export(run), around);
  return EXIT.done;
}

async function verifyFile(
  { subject, head, url, isJson }: Extract<AuditCommand, { readonly command: 'verify' }>,
  around: AuditDeps,
): Promise<number> {
  const { means, bytesOf, service } = around;
  const recorded = url === null ? null : service(url).lines;
  const finding = await verifyExport(bytesOf(subject), { ...means, head, recorded });
  return await showFinding(finding, { isJson }, around);
}
