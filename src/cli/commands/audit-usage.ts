/** The commands on a run's record: their usage and arguments. */
import { parseArgs } from 'node:util';
import type { ForkRequest } from '../../generated/schemas.js';
import { UsageFault, orUsageFault, serviceUrl } from './command.js';
import type { System } from '../../system/system.js';
import type { Styler, Print } from '../terminal/printer.js';
import type { RunRecords } from '../records/record.js';
import type { ServiceRecords } from '../records/service-records.js';

export const USAGE = `Usage: council events RUN              what is recorded of a run, a line an event
       council tail RUN                the same, as it is recorded, to the run's end
       council state RUN [--at N]      the run after event N, or after its last
       council diff RUN --from A [--to B]            what changed between two events of a run
       council diff RUN OTHER [--from A] [--to B]    between two runs, RUN after A and OTHER after B
       council verify RUN|FILE [--head HASH]         whether a record, or an export of one, is valid
       council fork RUN --at N --url URL [--topic TEXT] [--set KEY=JSON]… [--model NODE=MODEL]…
                    [--max-node-executions N] [--dry-run]
       council export RUN [--out FILE]               the events as lines of JSON, to verify elsewhere

  --url URL    ask a running service, for example http://127.0.0.1:8000, instead of reading DATA_DIR; with the FILE of
               verify, compare it with the record there
  --json       as JSON: events and tail one event a line, the others one object
  --head HASH  of the event that must be the last: finds events that are cut off
  --out FILE   appears when it is whole, or not at all
  --help       this text

Without --url they read DATA_DIR, where no service may run, and change nothing there. FILE is what is no run's id; - is
standard input.
Exit code: 0 done, 1 failed, 2 wrong usage, 3 no service there, 4 no such run or event, 5 DATA_DIR cannot be read.
Of verify: 0 valid, 1 not valid, 2 could not tell, for whatever reason. 130 after Ctrl-C.`;

/** Options of all commands. */
interface Common {
  /** Of the service; null: DATA_DIR. */
  readonly url: string | null;
  readonly isJson: boolean;
}

export type AuditCommand = Common &
  (
    | { readonly name: 'events' | 'tail'; readonly run: string }
    | { readonly name: 'state'; readonly run: string; readonly at: number | null }
    | {
        readonly name: 'diff';
        readonly run: string;
        readonly other: string;
        readonly from: number | null;
        readonly to: number | null;
      }
    | { readonly name: 'verify'; readonly subject: string; readonly isFile: boolean; readonly head: string | null }
    | {
        readonly name: 'fork';
        readonly run: string;
        readonly url: string;
        readonly request: ForkRequest;
        readonly isDry: boolean;
      }
    | { readonly name: 'export'; readonly run: string; readonly out: string | null }
  );

export type CommandName = AuditCommand['name'];

type Values = ReturnType<typeof parseWords>['values'];
type Option = Exclude<keyof Values, 'help' | 'url'>;

/** Options that a command takes, beside `--url` and `--help`. */
const OPTIONS: Readonly<Record<CommandName, readonly Option[]>> = {
  events: ['json'],
  tail: ['json'],
  state: ['json', 'at'],
  diff: ['json', 'from', 'to'],
  verify: ['json', 'head'],
  fork: ['json', 'at', 'topic', 'set', 'model', 'max-node-executions', 'dry-run'],
  export: ['out'],
};

/** Reads what follows `council`; null when only help is wanted. @throws {UsageFault} */
export function parseCommand([word = '', ...words]: readonly string[]): AuditCommand | null {
  if (!isCommand(word)) throw new UsageFault(`There is no command "${word}"`);
  const { values, positionals } = parseWords(words);
  if (values.help === true) return null;
  const known: readonly string[] = ['url', 'help', ...OPTIONS[word]];
  const unknown = Object.keys(values).find((name) => !known.includes(name));
  if (unknown !== undefined) throw new UsageFault(`council ${word} takes no --${unknown}`);
  const common = { url: values.url === undefined ? null : serviceUrl(values.url), isJson: values.json === true };
  return commandOf(word, { values, positionals, common });
}

interface ParsedWords {
  readonly values: Values;
  readonly positionals: readonly string[];
  readonly common: Common;
}

function commandOf(name: CommandName, { values, positionals, common }: ParsedWords): AuditCommand {
  const subject = name === 'verify' ? 'A run or a file' : 'A run';
  const [run, other] = subjectsIn(positionals, name === 'diff' ? 2 : 1, subject);
  const at = seqIn('at', values.at);
  switch (name) {
    case 'events':
    case 'tail':
      return { ...common, name, run };
    case 'state':
      return { ...common, name, run, at };
    case 'diff': {
      const [from, to] = [seqIn('from', values.from), seqIn('to', values.to)];
      if (other === undefined && from === null) throw new UsageFault('--from is missing, or another run');
      return { ...common, name, run, other: other ?? run, from, to };
    }
    case 'verify':
      return { ...common, name, subject: run, isFile: !isRunId(run), head: hashIn(values.head) };
    case 'fork':
      return forkOf(run, { ...common, at, values });
    case 'export':
      return { ...common, name, run, out: values.out ?? null };
    default:
      return name satisfies never;
  }
}

function forkOf(
  run: string,
  { url, isJson, at, values }: Common & { readonly at: number | null; readonly values: Values },
): AuditCommand {
  if (url === null) throw new UsageFault('A fork needs --url: it is a new run, and a service has to run it');
  if (at === null) throw new UsageFault('--at is missing: the event that the fork goes on from');
  const { topic, set = [], model = [] } = values;
  const most = countIn('max-node-executions', values['max-node-executions']);
  const changes = {
    ...(topic !== undefined && { input_topic: topic }),
    ...(set.length > 0 && { modified_state: Object.fromEntries(set.map(settingIn)) }),
    ...(model.length > 0 && { nodes: model.map(modelIn) }),
    ...(most !== null && { max_node_executions: most }),
  };
  const request = { at, ...(Object.keys(changes).length > 0 && { changes }) };
  return { name: 'fork', run, url, isJson, request, isDry: values['dry-run'] === true };
}

function isCommand(word: string): word is CommandName {
  return Object.hasOwn(OPTIONS, word);
}

/** Run ids are UUIDs; for `verify` anything else is a file. */
function isRunId(text: string): boolean {
  return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text);
}

function subjectsIn(
  positionals: readonly string[],
  most: number,
  subject: string,
): readonly [string, string | undefined] {
  const [run, other] = positionals;
  if (run === undefined || run === '') throw new UsageFault(`${subject} is missing`);
  if (positionals.length > most)
    throw new UsageFault(`Too many words: ${positionals.length}, at most ${most} are taken`);
  return [run, other];
}

function seqIn(name: string, text: string | undefined): number | null {
  if (text === undefined) return null;
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new UsageFault(`--${name} takes the number of an event, from 0; not "${text}"`);
}

function countIn(name: string, text: string | undefined): number | null {
  if (text === undefined) return null;
  if (/^[1-9]\d{0,14}$/.test(text)) return Number(text);
  throw new UsageFault(`--${name} takes a whole number from 1; not "${text}"`);
}

function hashIn(text: string | undefined): string | null {
  if (text === undefined) return null;
  if (/^[0-9a-f]{64}$/i.test(text)) return text.toLowerCase();
  throw new UsageFault('--head takes 64 hexadecimal digits');
}

function settingIn(text: string): readonly [string, unknown] {
  const [, key, json] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
  if (key === undefined || json === undefined) throw new UsageFault(`--set takes KEY=JSON, not "${text}"`);
  try {
    return [key, JSON.parse(json)];
  } catch {
    throw new UsageFault(`--set ${key} takes JSON, such as 8, null or '"a text"'; not ${json}`);
  }
}

/** Split at the last equals sign: node ids may hold some, names of models none. */
function modelIn(text: string): { readonly id: string; readonly model: string } {
  const [, id, model] = /^(.+)=([^=]+)$/s.exec(text) ?? [];
  if (id === undefined || model === undefined) throw new UsageFault(`--model takes NODE=MODEL, not "${text}"`);
  return { id, model };
}

function parseWords(words: readonly string[]) {
  return orUsageFault(() =>
    parseArgs({
      args: [...words],
      allowPositionals: true,
      options: {
        url: { type: 'string' },
        json: { type: 'boolean' },
        help: { type: 'boolean', short: 'h' },
        at: { type: 'string' },
        from: { type: 'string' },
        to: { type: 'string' },
        head: { type: 'string' },
        out: { type: 'string' },
        topic: { type: 'string' },
        set: { type: 'string', multiple: true },
        model: { type: 'string', multiple: true },
        'max-node-executions': { type: 'string' },
        'dry-run': { type: 'boolean' },
      },
    }),
  );
}

// The dependencies of the commands.

export interface AuditDeps {
  /** Opens the records that the command reads; nothing is opened before it is called. */
  readonly records: () => Promise<RunRecords>;
  readonly service: (url: string) => Promise<ServiceRecords>;
  /** The bytes of a file, or of standard input for `-`. */
  readonly bytesOf: (file: string) => AsyncIterable<Uint8Array>;
  readonly print: Print;
  readonly notify: (text: string) => void;
  readonly style: Styler;
  readonly isTerminal: boolean;
  /** Columns of the terminal; null where there is none. */
  readonly columns: number | null;
  readonly sha256: System['sha256'];
  readonly uuid: () => string;
  /** Aborts the command. */
  readonly signal: AbortSignal;
}
