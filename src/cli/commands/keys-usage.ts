/** `council keys`: its usage and arguments. */
import { parseArgs } from 'node:util';
import type { Key } from '../../generated/schemas.js';
import { SCOPES } from '../../keys/caller.js';
import type { Scope } from '../../keys/caller.js';
import { expiryIn, scopesOf } from '../../keys/key-request.js';
import { UsageFault, orUsageFault, serviceUrl } from './command.js';

export const KEYS_USAGE = `Usage: council keys add NAME --scopes SCOPE,SCOPE… [--expires 30d]    prints the new key, this once
       council keys list [--json]          every key that was ever added, never its text
       council keys revoke NAME

  --scopes   of ${SCOPES.join(', ')}; none implies another, the first key needs admin
  --expires  after 30d, 12h, 90m or 45s; without it a key lasts until it is revoked
  --url URL  ask a running service, for example http://127.0.0.1:8000; it asks for a key, which COUNCIL_KEY holds
  --help     this text

Without --url they work in the DATA_DIR of a stopped service, or on the log at EVENTSTORE_URL, and ask for no key.
Exit code: 0 done, 1 failed, 2 wrong usage or a key that is not given, 3 no service or log there, 4 no such key,
5 DATA_DIR cannot be used.`;

interface Common {
  /** Of the service; null: the log itself. */
  readonly url: string | null;
}

/** A key to add. */
export interface WantedKey {
  readonly name: string;
  readonly scopes: readonly Scope[];
  /** A time such as `30d`; null: never. */
  readonly expires: string | null;
}

/** Where keys are kept. */
export interface KeyBook {
  /** Resolves with the text of the new key, which is given this once. */
  add(wanted: WantedKey): Promise<string>;
  /** Every key that was ever added, in that order. */
  list(): Promise<readonly Key[]>;
  /** @throws {KeyUnknown} */
  revoke(name: string): Promise<void>;
}

export type KeysCommand = Common &
  (
    | { readonly act: 'add'; readonly wanted: WantedKey }
    | { readonly act: 'list'; readonly isJson: boolean }
    | { readonly act: 'revoke'; readonly name: string }
  );

/** Options that a command takes, beside `--url` and `--help`. */
const OPTIONS: Readonly<Record<KeysCommand['act'], readonly string[]>> = {
  add: ['scopes', 'expires'],
  list: ['json'],
  revoke: [],
};

/**
 * Reads what follows `council keys`; null when only help is wanted.
 *
 * @param now ISO 8601
 * @throws {UsageFault | KeyRefused}
 */
export function parseKeysCommand(words: readonly string[], now: string): KeysCommand | null {
  const { values, positionals } = parseWords(words);
  if (values.help === true) return null;
  const [act = '', ...names] = positionals;
  if (!isAct(act)) throw new UsageFault(act === '' ? 'add, list or revoke is missing' : `There is no keys ${act}`);
  const unknown = Object.keys(values).find((option) => option !== 'url' && !OPTIONS[act].includes(option));
  if (unknown !== undefined) throw new UsageFault(`council keys ${act} takes no --${unknown}`);
  const url = values.url === undefined ? null : serviceUrl(values.url);
  if (act === 'list') return { url, act, isJson: isListedAsJson(names, values) };
  const name = onlyOne(names);
  return act === 'revoke' ? { url, act, name } : { url, act, wanted: wantedKey(name, values, now) };
}

type Values = ReturnType<typeof parseWords>['values'];

function wantedKey(name: string, { scopes, expires }: Values, now: string): WantedKey {
  if (scopes === undefined) throw new UsageFault('--scopes is missing');
  // Checked before a service is called.
  if (expires !== undefined) expiryIn(expires, now);
  return {
    name,
    scopes: scopesOf(scopes.flatMap((each) => each.split(',')).map((each) => each.trim())),
    expires: expires ?? null,
  };
}

function isListedAsJson(names: readonly string[], { json }: Values): boolean {
  if (names.length > 0) throw new UsageFault('Too many words');
  return json === true;
}

function onlyOne([name = '', ...more]: readonly string[]): string {
  if (name === '') throw new UsageFault('The name of a key is missing');
  if (more.length > 0) throw new UsageFault('Too many words');
  return name;
}

function isAct(word: string): word is KeysCommand['act'] {
  return Object.hasOwn(OPTIONS, word);
}

function parseWords(words: readonly string[]) {
  return orUsageFault(() =>
    parseArgs({
      args: [...words],
      allowPositionals: true,
      options: {
        url: { type: 'string' },
        json: { type: 'boolean' },
        scopes: { type: 'string', multiple: true },
        expires: { type: 'string' },
        help: { type: 'boolean', short: 'h' },
      },
    }),
  );
}
