/** `council events`, `tail`, `state`, `diff`, `verify`, `fork` and `export`. */
import { nodeSystem } from '../../system/system.js';
import { readConfig, readCouncilKey } from '../../config.js';
import { CouncilError } from '../../errors.js';
import { LogUnreadable } from '../../eventlog/port.js';
import { ReaderGone, inOneLine, printable, printableJson, printerOn, stylerFor } from '../terminal/printer.js';
import type { CommandProcess } from './command.js';
import { EXIT, exitOfError, exitOfVerification, messageOf } from './exit-codes.js';
import { bytesIn, writeWhole } from '../records/files.js';
import type { RunRecords, VerificationResult } from '../records/record.js';
import { isTerminal, linesIn, verificationJson, verificationText } from '../records/record.js';
import type { ServiceRecords } from '../records/service-records.js';
import type { AuditCommand, AuditDeps, CommandName } from './audit-usage.js';
import { USAGE, parseCommand } from './audit-usage.js';
import { exportLine, readExport } from '../../audit/export.js';
import { eventLine } from '../terminal/event-line.js';
import { isOutcomeUnknown } from '../service-faults.js';

/** Characters of lines that are gathered before they are written. */
const PAGE_CHARS = 64 * 1024;

/** Runs the command that the arguments name; resolves with the exit code. */
export async function audit(words: readonly string[], process: CommandProcess): Promise<number> {
  const { signal } = process;
  const notify = (text: string): void => void process.stderr.write(`${printable(text)}\n`);
  let name: CommandName | null = words[0] === 'verify' ? 'verify' : null;
  try {
    const command = parseCommand(words);
    if (command === null) {
      await printerOn(process.stdout)(`${USAGE}\n`);
      return EXIT.done;
    }
    name = command.name;
    const code = await perform(command, auditDeps(command, process, notify));
    return signal.aborted ? EXIT.interrupted : code;
  } catch (error) {
    if (error instanceof ReaderGone) return EXIT.done;
    // After Ctrl-C errors are expected and not shown, except that a fork may have been started.
    if (!signal.aborted || error instanceof ForkUnknown) notify(messageOf(error, USAGE));
    return signal.aborted ? EXIT.interrupted : exitOfError(error, name);
  }
}

function auditDeps(command: AuditCommand, process: CommandProcess, notify: (text: string) => void): AuditDeps {
  const { env, stdin, stdout, signal } = process;
  const system = nodeSystem();
  const isTerminal = stdout.isTTY === true;
  const { sha256 } = system;
  // Loaded by the commands that need it: it is most of the program.
  const service = async (url: string): Promise<ServiceRecords> => {
    const { serviceRecords } = await import('../records/service-records.js');
    return serviceRecords(url, { key: readCouncilKey(env), system, notify, signal });
  };
  const records = async (): Promise<RunRecords> => {
    if (command.url !== null) return await service(command.url);
    const { folderRecords } = await import('../records/folder-records.js');
    return folderRecords(dataDirOf(env), { sha256 });
  };
  const { NO_COLOR: noColor, TERM: term } = env;
  return {
    ...{ records, service, sha256, signal, isTerminal, notify },
    bytesOf: (file) => bytesIn(file, stdin),
    print: printerOn(stdout),
    style: stylerFor({ isTerminal, noColor, term }),
    columns: isTerminal ? (stdout.columns ?? null) : null,
    uuid: system.uuid,
  };
}

/** @throws {LogUnreadable} when the record is not kept there */
function dataDirOf(environment: NodeJS.ProcessEnv): string {
  const { dataDir, eventStore } = readConfig(environment);
  if (eventStore === null) return dataDir;
  throw new LogUnreadable({ file: dataDir, reason: 'the record is kept by the server that EVENTSTORE_URL names' });
}

// The commands; each resolves with its exit code.

async function perform(command: AuditCommand, deps: AuditDeps): Promise<number> {
  if (command.name === 'verify' && command.isFile) return await verifyFile(command, deps);
  if (command.name === 'fork') return await forkRun(command, deps);
  const records = await deps.records();
  try {
    return await performOn(records, command, deps);
  } finally {
    records.close();
  }
}

type RecordCommand = Exclude<AuditCommand, { readonly name: 'fork' }>;

async function performOn(records: RunRecords, command: RecordCommand, deps: AuditDeps): Promise<number> {
  switch (command.name) {
    case 'events':
      return await listEvents(records, command, deps);
    case 'tail':
      return await tail(records, command, deps);
    case 'state': {
      const run = await records.state(command.run, command.at);
      const { stateText } = await import('../terminal/state-diff.js');
      return await show(command.isJson ? run : stateText(run, deps.style), deps);
    }
    case 'diff': {
      const from = await records.state(command.run, command.from);
      const { diffText, stateDiff } = await import('../terminal/state-diff.js');
      const diff = stateDiff(from, await records.state(command.other, command.to));
      return await show(command.isJson ? diff : diffText(diff, deps.style), deps);
    }
    case 'verify':
      return await showVerification(await records.verify(command.subject, command.head), command, deps);
    case 'export':
      return await exportRun(records, command, deps);
    default:
      return command satisfies never;
  }
}

/** Prints text for a reader, or a value as JSON. */
async function show(content: string | object, { print, isTerminal: isOnTerminal }: AuditDeps): Promise<number> {
  if (typeof content === 'string') await print(content);
  else {
    const json = JSON.stringify(content);
    await print(`${isOnTerminal ? printableJson(json) : json}\n`);
  }
  return EXIT.done;
}

async function showVerification(
  result: VerificationResult,
  { isJson }: { readonly isJson: boolean },
  deps: AuditDeps,
): Promise<number> {
  try {
    await show(isJson ? verificationJson(result) : verificationText(result, deps.style), deps);
  } catch (error) {
    // Without a reader the exit code still gives the result.
    if (!(error instanceof ReaderGone)) throw error;
  }
  return exitOfVerification(result);
}

type EventsCommand = Extract<AuditCommand, { readonly name: 'events' | 'tail' }>;

async function listEvents(records: RunRecords, { run, isJson }: EventsCommand, deps: AuditDeps): Promise<number> {
  if (isJson) return await printExport(records, run, deps);
  const { style, columns, print } = deps;
  let page = '';
  for await (const event of readExport(run, linesIn(records.export(run), run))) {
    page += `${eventLine(event, style, columns)}\n`;
    if (page.length < PAGE_CHARS) continue;
    await print(page);
    page = '';
  }
  await print(page);
  return EXIT.done;
}

async function tail(records: RunRecords, { run, isJson }: EventsCommand, deps: AuditDeps): Promise<number> {
  const { style, columns, print, notify } = deps;
  let isOver = false;
  for await (const event of records.follow(run)) {
    isOver = isTerminal(event);
    if (isJson) await print(jsonLine(exportLine(event), deps));
    else await print(`${eventLine(event, style, columns)}\n`);
  }
  if (!isOver && !deps.signal.aborted) notify('The run has not ended: nobody runs it here');
  return EXIT.done;
}

function jsonLine(line: string, { isTerminal: isOnTerminal }: AuditDeps): string {
  return `${isOnTerminal ? printableJson(line) : line}\n`;
}

/** Byte for byte; on a terminal, characters that would control it are escaped. */
async function printExport(records: RunRecords, run: string, deps: AuditDeps): Promise<number> {
  if (deps.isTerminal) {
    for await (const line of linesIn(records.export(run), run)) await deps.print(jsonLine(line, deps));
  } else for await (const chunk of records.export(run)) await deps.print(chunk);
  return EXIT.done;
}

async function exportRun(
  records: RunRecords,
  { run, out }: Extract<AuditCommand, { readonly name: 'export' }>,
  deps: AuditDeps,
): Promise<number> {
  if (out === null) return await printExport(records, run, deps);
  await writeWhole(out, records.export(run), deps);
  return EXIT.done;
}

async function verifyFile(
  { subject, head, url, isJson }: Extract<AuditCommand, { readonly name: 'verify' }>,
  deps: AuditDeps,
): Promise<number> {
  const { sha256, bytesOf, service } = deps;
  const { verifyExport } = await import('./verify-export.js');
  const recorded = url === null ? null : (await service(url)).lines;
  const result = await verifyExport(bytesOf(subject), { sha256, head, recorded });
  return await showVerification(result, { isJson }, deps);
}

// `council fork`: starts a fork at a service, or reports what it would do.

/** The answer to a fork is lost: it is unknown whether it has started. */
class ForkUnknown extends CouncilError<{ readonly runId: string }> {
  readonly code = 'cli.fork-unknown';
  constructor({ runId, cause }: { readonly runId: string; readonly cause: Error }) {
    super(`Cannot tell whether the fork of run "${runId}" has started: ${cause.message}`, { runId }, { cause });
  }
}

type ForkCommand = Extract<AuditCommand, { readonly name: 'fork' }>;

/** The new run's id alone goes to standard output. @throws {ForkUnknown} */
async function forkRun(command: ForkCommand, { service, print, notify, isTerminal }: AuditDeps): Promise<number> {
  const { run, request, url, isJson, isDry } = command;
  const json = (value: object): string => (isTerminal ? printableJson(JSON.stringify(value)) : JSON.stringify(value));
  if (isDry) {
    const plan = await (await service(url)).foresee(run, request);
    const next = plan.next_nodes.length === 0 ? 'It ends at once' : `It starts with ${plan.next_nodes.join(', ')}`;
    const text = `${inOneLine(next)}. Results taken over: ${plan.reused_results}. New calls at least: ${plan.new_calls_at_least}.`;
    await print(`${isJson ? json(plan) : text}\n`);
    return EXIT.done;
  }
  const started = await startFork(await service(url), command);
  notify(`Forked from run ${run} at event ${request.at}; follow it with: council tail ${started.run_id} --url ${url}`);
  await print(`${isJson ? json(started) : inOneLine(started.run_id)}\n`);
  return EXIT.done;
}

async function startFork(service: ServiceRecords, { run, request }: ForkCommand) {
  try {
    return await service.fork(run, request);
  } catch (error) {
    throw isOutcomeUnknown(error) ? new ForkUnknown({ runId: run, cause: error }) : error;
  }
}
