/**
 * Parses the values of settings. An unusable value throws a ConfigInvalid, one line that names the variable and never shows
 * a secret. Functions without a default return null for a variable without a value.
 */
import { ConfigInvalid } from './errors.js';
import { hostNameOf, isAddressOrRange } from './system/addresses.js';

/** An environment variable. */
export interface Variable {
  readonly name: string;
  /** Null if it is absent or empty. */
  readonly value: string | null;
}

/** Reads a variable by its name. */
export type Variables = (name: string) => Variable;

interface IntegerRange {
  readonly fallback: number;
  readonly min: number;
  readonly max: number;
}

export function integer({ name, value }: Variable, { fallback, min, max }: IntegerRange): number {
  if (value === null) return fallback;
  const number = /^\d{1,10}$/.test(value) ? Number(value) : Number.NaN;
  if (number >= min && number <= max) return number;
  throw new ConfigInvalid({ variable: name, value, accepted: `a whole number from ${min} to ${max}` });
}

export function oneOf<T extends string>({ name, value }: Variable, accepted: readonly T[], fallback: T): T {
  if (value === null) return fallback;
  const found = accepted.find((each) => each === value);
  if (found !== undefined) return found;
  // A longer value may be a key in the wrong variable.
  const shown = /^(?!sk-)[\w-]{1,12}$/.test(value) ? value : HIDDEN;
  throw new ConfigInvalid({ variable: name, value: shown, accepted: accepted.map((each) => `"${each}"`).join(', ') });
}

/** A key for a header. Other characters would fail later, in an error that shows the whole value. */
export function secret({ name, value }: Variable): string | null {
  if (value === null || /^[\x21-\x7e]+$/.test(value)) return value;
  throw new ConfigInvalid({
    variable: name,
    value: HIDDEN,
    accepted: 'a key of visible ASCII characters without spaces',
  });
}

/** A text without control characters, such as the carriage return at the end of a line of a Windows file. */
export function plainText({ name, value }: Variable, fallback: string): string {
  if (value === null) return fallback;
  if (isPlainText(value)) return value;
  throw new ConfigInvalid({ variable: name, value, accepted: 'a text without control characters' });
}

function isPlainText(value: string): boolean {
  return !/\p{Cc}/u.test(value);
}

export function modelName({ name, value }: Variable): string | null {
  if (value === null || /^[\x21-\x7e]{1,200}$/.test(value)) return value;
  throw new ConfigInvalid({ variable: name, value, accepted: 'a name of 1 to 200 visible ASCII characters' });
}

export function address({ name, value }: Variable): string | null {
  const url = value === null ? null : plainUrl(value);
  if (url !== null || value === null) return url;
  throw new ConfigInvalid({
    variable: name,
    // Credentials and queries may hold secrets.
    value: /[@?#]/.test(value) ? HIDDEN : value,
    accepted: 'an http or https URL without credentials, query and fragment',
  });
}

/** The URL without trailing slashes, or null unless it is http or https without credentials, query and fragment. */
export function plainUrl(text: string): string | null {
  const url = URL.canParse(text) ? new URL(text) : null;
  const isPlain = url !== null && url.username + url.password === '' && !/[?#]/.test(text);
  return isPlain && (url.protocol === 'https:' || url.protocol === 'http:') ? url.href.replace(/\/+$/, '') : null;
}

const HIDDEN = '(hidden)';

/** Scheme, credentials, hosts, options. Separators in a password are percent-encoded. */
const CONNECTION_STRING =
  /^(?:esdb|kurrentdb)(?<discover>\+discover)?:\/\/(?:[^:@/?#]+:[^:@/?#]+@)?(?<hosts>[^:@/?#,]+(?::\d{1,5})?(?:,[^:@/?#,]+(?::\d{1,5})?)*)\/?(?:\?(?<options>[^?#]*))?$/;

/** The options of a connection string with their values. Case, dashes and underscores in names do not matter. */
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
  // A server treats pings more often than every ten seconds as an attack.
  keepAliveInterval: /^(-1|[1-9]\d{4,8})$/,
  keepAliveTimeout: /^(-1|\d{1,9})$/,
};

/** A connection string. Unknown options are refused here, because the vendor's client ignores them or shows the password. */
export function connectionString({ name, value }: Variable): string | null {
  if (value === null) return null;
  const { discover, hosts = '', options = '' } = CONNECTION_STRING.exec(value)?.groups ?? {};
  const isOneName = discover === undefined || !hosts.includes(',');
  const [wrong] = options.split('&').filter((option) => option !== '' && !isConnectionOption(option));
  const isPort = (host: string): boolean =>
    /^[^:]+$/.test(host) || (/:0*([1-9]\d{0,4})$/.test(host) && Number(host.split(':')[1]) < 65_536);
  const isWellFormed = hosts !== '' && hosts.split(',').every(isPort) && isOneName && wrong === undefined;
  if (isWellFormed && isPlainText(value)) return value;
  throw new ConfigInvalid({ variable: name, value: withoutSecrets(value), accepted: connectionForm(wrong) });
}

/** The hosts in a connection string, without credentials and options. */
export function hostsIn(connection: string): string {
  return CONNECTION_STRING.exec(connection)?.groups?.['hosts'] ?? HIDDEN;
}

/** The accepted form, or the accepted options if the form is right and an option is wrong. */
function connectionForm(wrong: string | undefined): string {
  if (wrong === undefined) {
    const hosts = 'esdb://[user:password@]host[:port][,host[:port]]...';
    return `${hosts} with ?option=value&... or esdb+discover://name, without control characters`;
  }
  const option = JSON.stringify(wrong.replace(/=.*$/s, ''));
  return `for the option ${option} a valid value, and only the options ${Object.keys(CONNECTION_OPTIONS).join(', ')}`;
}

function isConnectionOption(option: string): boolean {
  const flat = (name: string): string => name.toLowerCase().replace(/[_-]/g, '');
  const [name = '', ...value] = option.split('=');
  const found = Object.entries(CONNECTION_OPTIONS).find(([each]) => flat(each) === flat(name));
  return found?.[1].test(value.join('=')) ?? false;
}

/** The text with everything before an `@` and the values of all options hidden. */
export function withoutSecrets(value: string): string {
  const [, scheme = ''] = /^([a-z]+(?:\+[a-z]+)?:\/\/)/.exec(value) ?? [];
  const at = value.lastIndexOf('@');
  const shown = at < 0 ? value : `${scheme}${HIDDEN}${value.slice(at)}`;
  return shown.replace(/=[^&]*/g, '=…');
}

/** A comma-separated list, empty without a value. @param parse returns an item, or null if it is unusable */
function list({ name, value }: Variable, accepted: string, parse: (item: string) => string | null): readonly string[] {
  if (value === null) return [];
  return value.split(',').map((text) => {
    const item = parse(text.trim());
    if (item !== null) return item;
    throw new ConfigInvalid({ variable: name, value, accepted: `a comma-separated list of ${accepted}` });
  });
}

export function origins(variable: Variable): readonly string[] {
  return list(variable, 'origins such as https://example.org', (text) =>
    URL.canParse(text) && new URL(text).origin === text ? text : null,
  );
}

export function addresses(variable: Variable): readonly string[] {
  return list(variable, 'addresses and ranges such as 10.0.0.7, 172.16.0.0/12', (text) =>
    isAddressOrRange(text) ? text : null,
  );
}

/** Fields of requests, as `name=value,name=value` with percent-encoded values. They may hold secrets. */
export function headerFields({ name, value }: Variable): Readonly<Record<string, string>> {
  if (value === null) return {};
  const fields = value
    .split(',')
    .map((field) => /^\s*([!#$%&'*+.^_`|~\w-]+)\s*=\s*([\x21-\x7e]*)\s*$/.exec(field) ?? []);
  const decoded = fields.map(([, field = '', text = '']) => [field, percentDecoded(text)] as const);
  if (decoded.every(([field, text]) => field !== '' && text !== null)) {
    return Object.fromEntries(decoded.map(([field, text]) => [field, text ?? '']));
  }
  const accepted = 'fields as name=value,name=value with percent-encoded values';
  throw new ConfigInvalid({ variable: name, value: HIDDEN, accepted });
}

/** The text of visible ASCII characters and spaces, or null if it is another. */
function percentDecoded(text: string): string | null {
  try {
    const decoded = decodeURIComponent(text);
    return /^[\x20-\x7e]*$/.test(decoded) ? decoded : null;
  } catch {
    return null;
  }
}

/** Host names in the form of `hostNameOf`. A port or a pattern is refused, because no host name would match it. */
export function hostNames(variable: Variable): readonly string[] {
  const accepted = 'host names or addresses without scheme and port such as council.example.org';
  return list(variable, accepted, (text) => (HOST_NAME.test(text) ? hostNameOf(text) || null : null));
}

/** A name or an IPv4 address, or an IPv6 address, in brackets or not. */
const HOST_NAME = /^([\p{L}\p{N}._-]+|\[?[\da-f.]*:[\da-f.]*:[\da-f:.]*\]?)$/iu;

/** URLs of proxies, each null if there is none, and the hosts that are called without one, as in `NO_PROXY`. */
export interface ProxySettings {
  readonly http: string | null;
  readonly https: string | null;
  readonly none: string;
}
