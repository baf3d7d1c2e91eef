/** What the commands on the record of a run share: options, where they read, and what they print with. */
import { readConfig, readCouncilKey } from '../../config.js';
import { LogUnreadable } from '../../eventlog/port.js';
import { nodeSystem } from '../../system/system.js';
import { fieldOf } from '../../system/untrusted.js';
import type { RunRecords } from '../records/record.js';
import type { ServiceRecords } from '../records/service-records.js';
import type { Styler } from '../terminal/printer.js';
import { printableJson, stylerFor } from '../terminal/printer.js';
import type { CommandProcess, CommandSpec, Options, Output, Words } from './command.js';
import { HELP, execute, serviceUrl } from './command.js';
import { EXIT, UsageFault } from './exit-codes.js';

/** Options of every command on a record. */
export const RECORD_OPTIONS = { ...HELP, url: { type: 'string' } } as const;
export const JSON_OPTION = { json: { type: 'boolean' } } as const;

/** The end of every usage. */
export const PLACES = `  --url URL    read from a running service, for example http://127.0.0.1:8000; without it the command reads
               DATA_DIR, changes nothing there, and refuses while a service runs on it
  --help       show this text

Exit code: 0 done, 1 failed, 2 wrong usage, 3 no service at URL, 4 no such run or event, 5 DATA_DIR is unreadable,
130 after Ctrl-C.`;

export interface RecordDeps extends Output {
  /** Address of the service, or null to read DATA_DIR. */
  readonly url: string | null;
  /** Opens the records for some work and closes them after it. */
  readonly reading: <T>(work: (records: RunRecords) => Promise<T>) => Promise<T>;
  readonly service: (url: string) => Promise<ServiceRecords>;
  readonly style: Styler;
  readonly isTerminal: boolean;
  /** Columns of the terminal, or null if standard output is not a terminal. */
  readonly columns: number | null;
}

/** Runs a command on a record; resolves with the exit code. */
export function onRecord<const O extends Options>(
  words: readonly string[],
  here: CommandProcess,
  spec: CommandSpec<O>,
  act: (given: Words<O>, deps: RecordDeps) => Promise<number>,
): Promise<number> {
  return execute(words, here, spec, async (given, output) => {
    const url = fieldOf(given.values, 'url');
    return await act(given, recordDeps(typeof url === 'string' ? serviceUrl(url) : null, here, output));
  });
}

function recordDeps(url: string | null, { env, stdout, signal }: CommandProcess, output: Output): RecordDeps {
  const system = nodeSystem();
  const isTerminal = stdout.isTTY === true;
  // Loaded by the commands that need it: it is most of the program.
  const service = async (at: string): Promise<ServiceRecords> => {
    const { serviceRecords } = await import('../records/service-records.js');
    return serviceRecords(at, { key: readCouncilKey(env), system, notify: output.notify, signal });
  };
  const open = async (): Promise<RunRecords> => {
    if (url !== null) return await service(url);
    const { folderRecords } = await import('../records/folder-records.js');
    return folderRecords(dataDirOf(env), system);
  };
  const { NO_COLOR: noColor, TERM: term } = env;
  return {
    ...output,
    url,
    service,
    isTerminal,
    async reading(work) {
      const records = await open();
      try {
        return await work(records);
      } finally {
        records.close();
      }
    },
    style: stylerFor({ isTerminal, noColor, term }),
    columns: isTerminal ? (stdout.columns ?? null) : null,
  };
}

/** @throws {LogUnreadable} a server keeps the record */
function dataDirOf(env: NodeJS.ProcessEnv): string {
  const { dataDir, eventStore } = readConfig(env);
  if (eventStore === null) return dataDir;
  throw new LogUnreadable({ file: dataDir, reason: 'the server that EVENTSTORE_URL names keeps the record' });
}

/** The run ids among the words: one, and with `most` 2 an optional second. @throws {UsageFault} */
export function runsIn(
  positionals: readonly string[],
  { most = 1, what = 'A run' }: { readonly most?: number; readonly what?: string } = {},
): readonly [string, string | undefined] {
  const [run, other] = positionals;
  if (run === undefined || run === '') throw new UsageFault(`${what} is missing`);
  if (positionals.length > most)
    throw new UsageFault(`Too many words: ${positionals.length}, at most ${most} accepted`);
  return [run, other];
}

/** The number of an event, or null if the option is absent. @throws {UsageFault} */
export function seqIn(name: string, text: string | undefined): number | null {
  if (text === undefined) return null;
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new UsageFault(`--${name} takes the number of an event, from 0; not "${text}"`);
}

/** A line of JSON to print. On a terminal, the characters that control it are escaped. */
export function jsonText(json: string, { isTerminal }: Pick<RecordDeps, 'isTerminal'>): string {
  return `${isTerminal ? printableJson(json) : json}\n`;
}

/** Prints a text for a reader, or a value as JSON. */
export async function show(content: string | object, deps: Pick<RecordDeps, 'print' | 'isTerminal'>): Promise<number> {
  await deps.print(typeof content === 'string' ? content : jsonText(JSON.stringify(content), deps));
  return EXIT.done;
}
