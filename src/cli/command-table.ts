/** The commands of `council`. Each is loaded when it is called. */
import type { Command } from './commands/command.js';
import { EXIT, VERIFIED } from './commands/exit-codes.js';

export interface CommandRow {
  readonly name: string;
  /** The words that follow the name, or null if none may. */
  readonly words: string | null;
  /** What `--help` shows of a command without words; the others show it themselves. */
  readonly help?: string;
  /** What it does, for the usage. */
  readonly does: string;
  /** Loads the command, or null for the service: a program that starts when it is loaded and sets its own exit code. */
  readonly load: (() => Promise<Command>) | null;
  /** Exit code when a signal that aborts the command is repeated, or null if the first signal ends the process. */
  readonly onSecondSignal: number | null;
  /** Exit code of an unexpected error. Default: by the kind of the error. */
  readonly exitOnError?: number;
}

const RECORD = { onSecondSignal: EXIT.interrupted } as const;
const FOLDER = { onSecondSignal: null } as const;

const SERVE = `Usage: council serve

Starts the service and prints its address. Settings come from the environment, for example HOST, PORT, DATA_DIR and
OPENAI_API_KEY; "Settings" in src/app/README.md lists them all. Ctrl-C stops the service; unfinished runs continue at its
next start.

Exit code: 0 stopped, 1 a fault, 2 an unusable setting.
`;

const MIGRATE = `Usage: council migrate

Copies the log in DATA_DIR to the server that EVENTSTORE_URL names. The service must be stopped. A second call copies the
rest.

Exit code: 0 copied, 1 the copy is incomplete, 2 an unusable setting.
`;

export const COMMANDS: readonly CommandRow[] = [
  { name: 'serve', words: null, help: SERVE, does: 'starts the service', load: null, onSecondSignal: null },
  {
    name: 'run',
    words: '"<topic>" [options]',
    does: 'runs a council on a topic',
    load: async () => (await import('./commands/run.js')).run,
    onSecondSignal: EXIT.failed,
  },
  {
    name: 'events',
    words: 'RUN',
    does: 'lists the events of a run',
    ...RECORD,
    load: async () => (await import('./commands/events.js')).events,
  },
  {
    name: 'tail',
    words: 'RUN',
    does: 'lists the events of a run as they are recorded',
    ...RECORD,
    load: async () => (await import('./commands/events.js')).tail,
  },
  {
    name: 'state',
    words: 'RUN [--at N]',
    does: 'shows a run after one of its events',
    ...RECORD,
    load: async () => (await import('./commands/state.js')).state,
  },
  {
    name: 'draft',
    words: 'RUN [--format md|docx]',
    does: 'writes the draft of a run',
    ...RECORD,
    load: async () => (await import('./commands/draft.js')).draft,
  },
  {
    name: 'show',
    words: 'RUN',
    does: 'shows the answers of panels, judges and juries',
    ...RECORD,
    load: async () => (await import('./commands/show.js')).showDeliberation,
  },
  {
    name: 'diff',
    words: 'RUN [OTHER] …',
    does: 'shows what differs between two events or runs',
    ...RECORD,
    load: async () => (await import('./commands/diff.js')).diff,
  },
  {
    name: 'verify',
    words: 'RUN|FILE',
    does: 'checks a record, or an export of one',
    ...RECORD,
    load: async () => (await import('./commands/verify.js')).verify,
    exitOnError: VERIFIED.cannotTell,
  },
  {
    name: 'verify-export',
    words: 'FILE …',
    does: 'checks an export against its proof',
    ...RECORD,
    load: async () => (await import('./commands/verify-export.js')).verifyExport,
    exitOnError: VERIFIED.cannotTell,
  },
  {
    name: 'fork',
    words: 'RUN --at N --url URL …',
    does: 'starts a run that continues another',
    ...RECORD,
    load: async () => (await import('./commands/fork.js')).fork,
  },
  {
    name: 'export',
    words: 'RUN [--out FILE]',
    does: 'writes the events as lines of JSON',
    ...RECORD,
    load: async () => (await import('./commands/export.js')).exportRun,
  },
  {
    name: 'traces',
    words: '--from TIME [--to TIME]',
    does: 'exports past runs to an OTLP collector',
    ...RECORD,
    load: async () => (await import('./commands/traces.js')).traces,
  },
  {
    name: 'next',
    words: 'RUN --url URL',
    does: 'shows the next calls of a paused run',
    ...RECORD,
    load: async () => (await import('./commands/next.js')).next,
  },
  {
    name: 'sources',
    words: 'RUN --url URL',
    does: 'shows the pages that a draft cites',
    ...RECORD,
    load: async () => (await import('./commands/sources.js')).sources,
  },
  {
    name: 'erase',
    words: 'RUN --url URL …',
    does: 'erases a run that has ended',
    ...RECORD,
    load: async () => (await import('./commands/erase.js')).erase,
  },
  {
    name: 'runs',
    words: '--url URL [filters] …',
    does: 'lists or exports the runs of a service',
    ...RECORD,
    load: async () => (await import('./commands/runs.js')).runs,
  },
  {
    name: 'overview',
    words: '--url URL …',
    does: 'shows figures of many runs',
    ...RECORD,
    load: async () => (await import('./commands/overview.js')).overview,
  },
  {
    name: 'estimate',
    words: '--url URL …',
    does: 'shows what runs of a council use',
    ...RECORD,
    load: async () => (await import('./commands/estimate.js')).estimate,
  },
  {
    name: 'about',
    words: '--url URL',
    does: 'shows version, log and default model',
    ...RECORD,
    load: async () => (await import('./commands/about.js')).about,
  },
  {
    name: 'keys',
    words: 'add|list|revoke …',
    does: 'adds, lists and revokes API keys',
    ...RECORD,
    load: async () => (await import('./commands/keys.js')).keys,
  },
  {
    name: 'webhooks',
    words: 'add|list|remove …',
    does: 'registers webhooks, shows deliveries',
    ...RECORD,
    load: async () => (await import('./commands/webhooks.js')).webhooks,
  },
  {
    name: 'prices',
    words: '[MODEL...]',
    does: 'lists the prices of models',
    load: async () => (await import('./commands/prices.js')).prices,
    onSecondSignal: null,
  },
  {
    name: 'migrate',
    words: null,
    help: MIGRATE,
    does: 'copies the log in DATA_DIR to EVENTSTORE_URL',
    load: async () => (await import('./commands/migrate.js')).migrate,
    onSecondSignal: EXIT.failed,
  },
  {
    name: 'backup',
    words: '--to DIR [--url URL]',
    does: 'copies the log into a new folder',
    ...RECORD,
    load: async () => (await import('./commands/backup.js')).backup,
  },
  {
    name: 'check',
    words: '[--accept-loss]',
    does: 'checks the log in DATA_DIR',
    ...FOLDER,
    load: async () => (await import('./commands/check.js')).check,
  },
  {
    name: 'salvage',
    words: '--to DIR',
    does: 'copies what is intact of a corrupt log',
    ...FOLDER,
    load: async () => (await import('./commands/salvage.js')).salvage,
  },
];

/** Columns of a command and its words. */
const COLUMNS = 32;

const LINES = COMMANDS.map(({ name, words, does }) => `  council ${`${name} ${words ?? ''}`.padEnd(COLUMNS)}${does}\n`);

export const USAGE = `Usage: council COMMAND [words]
       council --help | --version

${LINES.join('')}
council COMMAND --help shows the options of a command. migrate, check, salvage and a backup without --url
need the service to be stopped.
`;
