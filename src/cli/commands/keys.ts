/** `council keys`: adds, lists and revokes keys. */
import { readConfig, readCouncilKey } from '../../config.js';
import type { Key } from '../../generated/schemas.js';
import { AppendOutcomeUnknown } from '../../eventlog/errors.js';
import { SCOPES } from '../../keys/caller.js';
import { expiryIn, scopesOf } from '../../keys/key-request.js';
import { nodeSystem } from '../../system/system.js';
import type { KeyBook } from '../records/service-keys.js';
import { isOutcomeUnknown } from '../service-faults.js';
import { OutputFailed, ReaderGone, printable, printableJson } from '../terminal/printer.js';
import { tableText } from '../terminal/table.js';
import type { CommandProcess, Output, Words } from './command.js';
import { HELP, execute, serviceUrl } from './command.js';
import { EXIT, OutcomeUnknown, UsageFault } from './exit-codes.js';

const USAGE = `Usage: council keys add NAME --scopes SCOPE,SCOPE… [--expires 30d] [--url URL]
       council keys list [--json] [--url URL]
       council keys revoke NAME [--url URL]

add prints the new key, which cannot be shown again. list shows every key that was ever added, never its text.

  --scopes   of ${SCOPES.join(', ')}; none implies another, the first key needs admin
  --expires  after 30d, 12h, 90m or 45s; without it the key is valid until it is revoked
  --json     print the list as JSON
  --url URL  the running service, for example http://127.0.0.1:8000, with an admin key in COUNCIL_KEY
  --help     show this text

Without --url the command needs no key and works in the DATA_DIR of a stopped service, or on the log at EVENTSTORE_URL.
Exit code: 0 done, 1 failed, 2 wrong usage or a refused key, 3 no service or log there, 4 no such key, 5 DATA_DIR cannot
be used, 130 after Ctrl-C.`;

const OPTIONS = {
  ...HELP,
  url: { type: 'string' },
  json: { type: 'boolean' },
  scopes: { type: 'string', multiple: true },
  expires: { type: 'string' },
} as const;

type Values = Words<typeof OPTIONS>['values'];

interface Given {
  readonly values: Values;
  /** The words after `add`, `list` or `revoke`. */
  readonly names: readonly string[];
}

interface KeysDeps extends Output {
  readonly book: () => Promise<KeyBook>;
  /** ISO 8601. */
  readonly now: string;
  readonly isTerminal: boolean;
}

interface Action {
  readonly run: (given: Given, deps: KeysDeps) => Promise<void>;
  /** The options that it takes beside `--url` and `--help`. */
  readonly options: readonly (keyof Values)[];
}

const ACTIONS = new Map<string, Action>([
  ['add', { run: add, options: ['scopes', 'expires'] }],
  ['list', { run: list, options: ['json'] }],
  ['revoke', { run: revoke, options: [] }],
]);

export function keys(words: readonly string[], here: CommandProcess): Promise<number> {
  return execute(words, here, { usage: USAGE, options: OPTIONS }, async ({ values, positionals }, output) => {
    const [name = '', ...names] = positionals;
    const action = ACTIONS.get(name);
    if (action === undefined) {
      throw new UsageFault(name === '' ? 'add, list or revoke is missing' : `There is no command "keys ${name}"`);
    }
    const unknown = Object.keys(values).find((option) => ![...action.options, 'url'].includes(option));
    if (unknown !== undefined) throw new UsageFault(`council keys ${name} takes no --${unknown}`);
    const url = values.url === undefined ? null : serviceUrl(values.url);
    const isTerminal = here.stdout.isTTY === true;
    const book = (): Promise<KeyBook> => keyBook(url, here);
    await action.run({ values, names }, { ...output, book, now: nodeSystem().now(), isTerminal });
    return EXIT.done;
  });
}

/** Loads either the client or the adapter of the log, not both. */
async function keyBook(url: string | null, { env, signal }: CommandProcess): Promise<KeyBook> {
  const system = nodeSystem();
  if (url === null) return (await import('../records/log-keys.js')).logKeys(readConfig(env), system);
  const { serviceKeys } = await import('../records/service-keys.js');
  return serviceKeys(url, { key: readCouncilKey(env), system, signal });
}

/** The key is all that goes to standard output. @throws {OutcomeUnknown} */
async function add({ values, names }: Given, { book, print, notify, now }: KeysDeps): Promise<void> {
  const name = onlyOne(names);
  const { scopes: given, expires = null } = values;
  if (given === undefined) throw new UsageFault('--scopes is missing');
  // A malformed duration is refused before the command calls a service.
  if (expires !== null) expiryIn(expires, now);
  const scopes = scopesOf(given.flatMap((each) => each.split(',')).map((each) => each.trim()));
  const keysThere = await book();
  try {
    await print(`${await keysThere.add({ name, scopes, expires })}\n`);
  } catch (error) {
    if (!isKeyLost(error)) throw error;
    throw new OutcomeUnknown(`Cannot show key "${name}", which may exist; revoke it`, error);
  }
  const lasting = expires === null ? 'until it is revoked' : `for ${expires}`;
  notify(`Key "${name}" is added, with ${scopes.join(', ')}, valid ${lasting}. It cannot be shown again.`);
  notify('Send it as "Authorization: Bearer …"; the council commands read it from COUNCIL_KEY.');
}

/** Whether the key may have been added although its text is lost. */
function isKeyLost(error: unknown): error is Error {
  return (
    isOutcomeUnknown(error) ||
    error instanceof ReaderGone ||
    error instanceof OutputFailed ||
    error instanceof AppendOutcomeUnknown
  );
}

async function revoke({ names }: Given, { book, notify }: KeysDeps): Promise<void> {
  const name = onlyOne(names);
  await (await book()).revoke(name);
  notify(`Key "${name}" is revoked`);
}

function onlyOne([name = '', ...more]: readonly string[]): string {
  if (name === '') throw new UsageFault('The name of a key is missing');
  if (more.length > 0) throw new UsageFault('Too many words');
  return name;
}

async function list({ values, names }: Given, { book, print, notify, now, isTerminal }: KeysDeps): Promise<void> {
  if (names.length > 0) throw new UsageFault('Too many words');
  const found = await (await book()).list();
  if (values.json === true) {
    const json = JSON.stringify(found);
    return await print(`${isTerminal ? printableJson(json) : json}\n`);
  }
  if (found.length === 0) return notify('No key was ever added');
  const rows = found.map((key) => [
    key.name,
    key.scopes.join(','),
    keyStatus(key, now),
    key.last_used === undefined ? '' : `used ${key.last_used ?? 'never'}`,
  ]);
  await print(printable(tableText(rows)));
}

function keyStatus(key: Key, now: string): string {
  const { expires_at: expiresAt, revoked_at: revokedAt, revoked_by: by } = key;
  if (revokedAt !== null) return `revoked ${day(revokedAt)}${by === null ? '' : ` by ${by}`}`;
  if (expiresAt === null) return 'valid';
  return expiresAt <= now ? `expired ${day(expiresAt)}` : `valid until ${day(expiresAt)}`;
}

function day(timestamp: string): string {
  return timestamp.slice(0, 10);
}
