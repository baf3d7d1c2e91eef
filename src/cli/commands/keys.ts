/** `council keys`: adds, lists and revokes keys. */
import { readConfig, readCouncilKey } from '../../config.js';
import { CouncilError } from '../../errors.js';
import type { Key } from '../../generated/schemas.js';
import { AppendOutcomeUnknown } from '../../eventlog/errors.js';
import { elementAt } from '../../system/element.js';
import { nodeSystem } from '../../system/system.js';
import type { System } from '../../system/system.js';
import { isOutcomeUnknown } from '../service-faults.js';
import type { Print } from '../terminal/printer.js';
import { OutputFailed, ReaderGone, printable, printableJson, printerOn } from '../terminal/printer.js';
import type { CommandProcess } from './command.js';
import { EXIT, exitOfError, messageOf } from './exit-codes.js';
import type { KeyBook, KeysCommand, WantedKey } from './keys-usage.js';
import { KEYS_USAGE, parseKeysCommand } from './keys-usage.js';

/** Runs the command that the arguments name; resolves with the exit code. */
export async function keys([, ...words]: readonly string[], process: CommandProcess): Promise<number> {
  const { env, stdout, signal } = process;
  const notify = (text: string): void => void process.stderr.write(`${printable(text)}\n`);
  const system = nodeSystem();
  try {
    const command = parseKeysCommand(words, system.now());
    const print = printerOn(stdout);
    if (command === null) {
      await print(`${KEYS_USAGE}\n`);
      return EXIT.done;
    }
    const book = await keyBook(command.url, { env, system, signal });
    await perform(command, { book, print, notify, now: system.now(), isTerminal: stdout.isTTY === true });
    return EXIT.done;
  } catch (error) {
    if (error instanceof ReaderGone) return EXIT.done;
    if (!signal.aborted || error instanceof KeyLost) notify(messageOf(error, KEYS_USAGE));
    return signal.aborted ? EXIT.interrupted : exitOfError(error, null);
  }
}

/** Loads either the client or the log's adapter, not both. */
async function keyBook(
  url: string | null,
  { env, system, signal }: Pick<CommandProcess, 'env' | 'signal'> & { readonly system: System },
): Promise<KeyBook> {
  if (url === null) return (await import('../records/log-keys.js')).logKeys(readConfig(env), system);
  const { serviceKeys } = await import('../records/service-keys.js');
  return serviceKeys(url, { key: readCouncilKey(env), system, signal });
}

interface KeysDeps {
  readonly book: KeyBook;
  readonly print: Print;
  readonly notify: (text: string) => void;
  /** ISO 8601. */
  readonly now: string;
  readonly isTerminal: boolean;
}

async function perform(command: KeysCommand, deps: KeysDeps): Promise<void> {
  switch (command.act) {
    case 'add':
      return await add(command.wanted, deps);
    case 'list':
      return await list(command.isJson, deps);
    case 'revoke':
      await deps.book.revoke(command.name);
      return deps.notify(`Key "${command.name}" is revoked`);
    default:
      return command satisfies never;
  }
}

/** The key may have been added, but its text is lost. */
class KeyLost extends CouncilError<{ readonly name: string }> {
  readonly code = 'cli.key-lost';
  constructor({ name, cause }: { readonly name: string; readonly cause: Error }) {
    super(`Cannot show key "${name}", which may be there: revoke it (${cause.message})`, { name }, { cause });
  }
}

/** The key alone goes to standard output. @throws {KeyLost} */
async function add(wanted: WantedKey, { book, print, notify }: KeysDeps): Promise<void> {
  const { name, scopes, expires } = wanted;
  try {
    await print(`${await book.add(wanted)}\n`);
  } catch (error) {
    throw isLost(error) ? new KeyLost({ name, cause: error }) : error;
  }
  const lasting = expires === null ? 'until it is revoked' : `for ${expires}`;
  notify(`Key "${name}" is added, with ${scopes.join(', ')}, ${lasting}. It is shown this once.`);
  notify('Send it as "Authorization: Bearer …"; the council commands take it from COUNCIL_KEY.');
}

/** Whether the text was lost after the key may have been added. */
function isLost(error: unknown): error is Error {
  return (
    isOutcomeUnknown(error) ||
    error instanceof ReaderGone ||
    error instanceof OutputFailed ||
    error instanceof AppendOutcomeUnknown
  );
}

async function list(isJson: boolean, { book, print, notify, now, isTerminal }: KeysDeps): Promise<void> {
  const found = await book.list();
  if (isJson) {
    const json = JSON.stringify(found);
    return await print(`${isTerminal ? printableJson(json) : json}\n`);
  }
  if (found.length === 0) return notify('No key was ever added');
  const rows = found.map((key) => [
    key.name,
    key.scopes.join(','),
    keyStatus(key, now),
    `used ${key.last_used ?? 'never'}`,
  ]);
  await print(printable(aligned(rows)));
}

function keyStatus(key: Key, now: string): string {
  const { expires_at: expiresAt, revoked_at: revokedAt, revoked_by: by } = key;
  if (revokedAt !== null) return `revoked ${day(revokedAt)}${by === null ? '' : ` by ${by}`}`;
  if (expiresAt === null) return 'valid';
  return expiresAt <= now ? `expired ${day(expiresAt)}` : `valid until ${day(expiresAt)}`;
}

function day(time: string): string {
  return time.slice(0, 10);
}

/** Lines with aligned columns. */
function aligned(rows: readonly (readonly string[])[]): string {
  const widthOf = (column: number): number => Math.max(...rows.map((row) => elementAt(row, column).length));
  const widths = elementAt(rows, 0).map((_, column) => widthOf(column));
  const lines = rows.map((row) => row.map((cell, column) => cell.padEnd(elementAt(widths, column))).join('  '));
  return lines.map((line) => `${line.trimEnd()}\n`).join('');
}
