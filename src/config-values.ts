/**
 * What settings may hold: each text becomes a value, or is refused in a line that names the variable and never a secret.
 * Each of these functions throws ConfigInvalid.
 */
import { ConfigInvalid } from './errors.js';
import { isAddressOrRange } from './system/address-list.js';
import { hostNameOf } from './system/host-name.js';

interface IntegerRange {
  readonly fallback: number;
  readonly min: number;
  readonly max: number;
}

export function integer(variable: string, value: string | null, { fallback, min, max }: IntegerRange): number {
  if (value === null) return fallback;
  const number = /^\d{1,10}$/.test(value) ? Number(value) : Number.NaN;
  if (number >= min && number <= max) return number;
  throw new ConfigInvalid({ variable, value, accepted: `a whole number from ${min} to ${max}` });
}

export function oneOf<T extends string>(variable: string, value: string, accepted: readonly T[]): T {
  const found = accepted.find((each) => each === value);
  if (found !== undefined) return found;
  // What is longer than a word may be a key in the wrong place.
  const shown = /^(?!sk-)[\w-]{1,12}$/.test(value) ? value : HIDDEN;
  throw new ConfigInvalid({ variable, value: shown, accepted: accepted.map((each) => `"${each}"`).join(', ') });
}

/** A header would refuse other characters later, and show the whole value in its complaint. */
export function secret(variable: string, value: string | null): string | null {
  if (value === null || /^[\x21-\x7e]+$/.test(value)) return value;
  throw new ConfigInvalid({ variable, value: HIDDEN, accepted: 'a key of visible ASCII characters without spaces' });
}

/** Refuses control characters: lines of a file that was written on Windows end in a carriage return. */
export function plainText(variable: string, value: string): string {
  if (isPlainText(value)) return value;
  throw new ConfigInvalid({ variable, value, accepted: 'a text without control characters' });
}

function isPlainText(value: string): boolean {
  return !/\p{Cc}/u.test(value);
}

export function modelName(variable: string, value: string | null): string | null {
  if (value === null || /^[\x21-\x7e]{1,200}$/.test(value)) return value;
  throw new ConfigInvalid({ variable, value, accepted: 'a name of 1 to 200 visible ASCII characters' });
}

export function address(variable: string, value: string): string {
  const url = plainUrl(value);
  if (url !== null) return url;
  throw new ConfigInvalid({
    variable,
    // Credentials and queries hold secrets.
    value: /[@?#]/.test(value) ? HIDDEN : value,
    accepted: 'an http or https URL without credentials, query and fragment',
  });
}

/** An http or https URL without its trailing slashes; null when it is none, or holds credentials, query or fragment. */
export function plainUrl(text: string): string | null {
  const url = URL.canParse(text) ? new URL(text) : null;
  const isPlain = url !== null && url.username + url.password === '' && !/[?#]/.test(text);
  return isPlain && (url.protocol === 'https:' || url.protocol === 'http:') ? url.href.replace(/\/+$/, '') : null;
}

const HIDDEN = '(hidden)';

/** Scheme, credentials, hosts, options. What separates its parts stands encoded in a password. */
const CONNECTION_STRING =
  /^(?:esdb|kurrentdb)(?<discover>\+discover)?:\/\/(?:[^:@/?#]+:[^:@/?#]+@)?(?<hosts>[^:@/?#,]+(?::\d{1,5})?(?:,[^:@/?#,]+(?::\d{1,5})?)*)\/?(?:\?(?<options>[^?#]*))?$/;

/** What an option of a connection string may hold. Names are taken in any case, with dashes or underscores. */
const CONNECTION_OPTIONS: Readonly<Record<string, RegExp>> = {
  tls: /^(true|false)$/,
  tlsCAFile: /./,
  userCertFile: /./,
  userKeyFile: /./,
  connectionName: /./,
  nodePreference: /^leader$/,
  maxDiscoverAttempts: /^[1-9]\d{0,3}$/,
  discoveryInterval: /^\d{1,6}$/,
  gossipTimeout: /^[1-9]\d{0,3}$/,
  // A server takes pings more often than every ten seconds for an attack.
  keepAliveInterval: /^(-1|[1-9]\d{4,8})$/,
  keepAliveTimeout: /^(-1|\d{1,9})$/,
};

/** What would be passed over later, a misspelt option for example, is refused here. */
export function connectionString(variable: string, value: string): string {
  const { discover, hosts = '', options = '' } = CONNECTION_STRING.exec(value)?.groups ?? {};
  const isOneName = discover === undefined || !hosts.includes(',');
  const [wrong] = options.split('&').filter((option) => option !== '' && !isConnectionOption(option));
  const isPort = (host: string): boolean =>
    /^[^:]+$/.test(host) || (/:0*([1-9]\d{0,4})$/.test(host) && Number(host.split(':')[1]) < 65_536);
  const isWellFormed = hosts !== '' && hosts.split(',').every(isPort) && isOneName && wrong === undefined;
  if (isWellFormed && isPlainText(value)) return value;
  const names = Object.keys(CONNECTION_OPTIONS).join(', ');
  const form = 'esdb://[user:password@]host[:port][,host[:port]]... with ?option=value&... or esdb+discover://name';
  const accepted =
    wrong === undefined
      ? `${form}, without control characters`
      : `for the option ${JSON.stringify(nameOf(wrong))} a value that fits; of options there are ${names}; no other`;
  throw new ConfigInvalid({ variable, value: withoutSecrets(value), accepted });
}

function isConnectionOption(option: string): boolean {
  const flat = (name: string): string => name.toLowerCase().replace(/[_-]/g, '');
  const [name = '', ...value] = option.split('=');
  const found = Object.entries(CONNECTION_OPTIONS).find(([each]) => flat(each) === flat(name));
  return found?.[1].test(value.join('=')) ?? false;
}

function nameOf(option: string): string {
  return option.replace(/=.*$/s, '');
}

/** Whatever the text looks like, nothing before an `@` is shown, and no value of an option. */
export function withoutSecrets(value: string): string {
  const [, scheme = ''] = /^([a-z]+(?:\+[a-z]+)?:\/\/)/.exec(value) ?? [];
  const at = value.lastIndexOf('@');
  const shown = at < 0 ? value : `${scheme}${HIDDEN}${value.slice(at)}`;
  return shown.replace(/=[^&]*/g, '=…');
}

export function origins(variable: string, value: string | null): readonly string[] {
  if (value === null) return [];
  return value.split(',').map((each) => {
    const text = each.trim();
    if (URL.canParse(text) && new URL(text).origin === text) return text;
    throw new ConfigInvalid({
      variable,
      value,
      accepted: 'a comma-separated list of origins such as https://example.org',
    });
  });
}

export function addresses(variable: string, value: string | null): readonly string[] {
  const texts = value === null ? [] : value.split(',').map((each) => each.trim());
  if (texts.every(isAddressOrRange)) return texts;
  const accepted = 'a comma-separated list of addresses and ranges such as 10.0.0.7, 172.16.0.0/12';
  throw new ConfigInvalid({ variable, value: value ?? '', accepted });
}

/** Names of hosts in the form of `hostNameOf`. A port or a pattern would be taken for a name that nobody has. */
export function hostNames(variable: string, value: string | null): readonly string[] {
  if (value === null) return [];
  return value.split(',').map((each) => {
    const text = each.trim();
    const name = HOST_NAME.test(text) ? hostNameOf(text) : null;
    if (name !== null && name !== '') return name;
    throw new ConfigInvalid({
      variable,
      value,
      accepted: 'a comma-separated list of host names or addresses without scheme and port such as council.example.org',
    });
  });
}

/** A name or an IPv4 address, or an IPv6 address, in brackets or not. */
const HOST_NAME = /^([\p{L}\p{N}._-]+|\[?[\da-f.]*:[\da-f.]*:[\da-f:.]*\]?)$/iu;
