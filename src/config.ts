/** The only reader of the environment: settings with their defaults, and readable refusals (contract, section 1). */
import { ConfigInvalid } from './errors.js';

export interface Config {
  readonly host: string;
  /** 0 picks a free port. */
  readonly port: number;
  readonly dataDir: string;
  /** The server that keeps the record; null: the embedded log in `dataDir` does. */
  readonly eventStore: EventStoreSettings | null;
  readonly modelProvider: OfflineSettings | GeminiSettings;
  /** Deadline of one call to the model, in milliseconds. */
  readonly modelTimeoutMs: number;
  /** Tries before a node fails its run. */
  readonly modelMaxAttempts: number;
  readonly maxActiveRuns: number;
  readonly maxModelCalls: number;
  /** How instances on one log know of each other; null where there is one alone. */
  readonly cluster: ClusterTimes | null;
  /** Origins that browsers may call from, as `scheme://host[:port]`. */
  readonly corsOrigins: readonly string[];
  readonly logLevel: 'debug' | 'info' | 'warn' | 'error' | 'silent';
}

export interface ClusterTimes {
  /** Time between two beats, in milliseconds. */
  readonly heartbeatMs: number;
  /** Silence after which an instance is taken for dead, in milliseconds. */
  readonly suspectAfterMs: number;
}

export interface EventStoreSettings {
  /** Connection string of an EventStoreDB or KurrentDB. Never shown: it may hold a password. */
  readonly url: string;
  /** Put before every stream's name. */
  readonly prefix: string;
}

export interface OfflineSettings {
  readonly name: 'offline';
  /** What a call takes, in milliseconds. */
  readonly latencyMs: number;
}

export interface GeminiSettings {
  readonly name: 'gemini';
  /** Visible ASCII, so that it fits a header. Never shown. */
  readonly apiKey: string;
  /** http or https, without a trailing slash, query, fragment or credentials. */
  readonly baseUrl: string;
  readonly model: string;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** The value of a variable, null when it is absent or empty. */
type Setting = (variable: string) => string | null;

/**
 * Reads the settings; an absent or empty variable means its default.
 *
 * @throws {ConfigInvalid} naming the variable, its value and what is accepted
 */
export function readConfig(environment: Environment): Config {
  const setting: Setting = (variable) => environment[variable] || null;
  return {
    host: setting('HOST') ?? '127.0.0.1',
    port: integer('PORT', setting('PORT'), { fallback: 8000, min: 0, max: 65_535 }),
    dataDir: setting('DATA_DIR') ?? './data',
    eventStore: eventStore(setting),
    modelProvider: provider(setting),
    modelTimeoutMs: integer('MODEL_TIMEOUT_MS', setting('MODEL_TIMEOUT_MS'), {
      fallback: 120_000,
      min: 1,
      max: MAX_TIMER_MS,
    }),
    modelMaxAttempts: integer('MODEL_MAX_ATTEMPTS', setting('MODEL_MAX_ATTEMPTS'), { fallback: 4, min: 1, max: 100 }),
    maxActiveRuns: integer('MAX_ACTIVE_RUNS', setting('MAX_ACTIVE_RUNS'), { fallback: 1_000, min: 1, max: 1_000_000 }),
    maxModelCalls: integer('MAX_MODEL_CALLS', setting('MAX_MODEL_CALLS'), { fallback: 64, min: 1, max: 1_000_000 }),
    cluster: clusterTimes(setting),
    corsOrigins: origins('CORS_ORIGINS', setting('CORS_ORIGINS')),
    logLevel: oneOf('LOG_LEVEL', setting('LOG_LEVEL') ?? 'info', ['debug', 'info', 'warn', 'error', 'silent']),
  };
}

function clusterTimes(setting: Setting): ClusterTimes | null {
  const heartbeatMs = integer('HEARTBEAT_MS', setting('HEARTBEAT_MS'), { fallback: 5_000, min: 50, max: 60_000 });
  const suspectAfterMs = integer('SUSPECT_AFTER_MS', setting('SUSPECT_AFTER_MS'), {
    fallback: 6 * heartbeatMs,
    // Fewer missed beats would make an instance suspect that only was busy.
    min: 3 * heartbeatMs,
    max: 3_600_000,
  });
  return setting('EVENTSTORE_URL') === null ? null : { heartbeatMs, suspectAfterMs };
}

/** The prefix is checked without a server too. */
function eventStore(setting: Setting): EventStoreSettings | null {
  const prefix = setting('EVENTSTORE_PREFIX') ?? '';
  if (!/^[a-z0-9]*$/.test(prefix)) {
    const accepted = 'a text of lower-case letters and digits';
    throw new ConfigInvalid({ variable: 'EVENTSTORE_PREFIX', value: prefix, accepted });
  }
  const url = setting('EVENTSTORE_URL');
  return url === null ? null : { url: connectionString('EVENTSTORE_URL', url), prefix };
}

/** Every setting is checked, also those of the provider that is not chosen: a typing error shows when it is made. */
function provider(setting: Setting): OfflineSettings | GeminiSettings {
  const apiKey = secret('GEMINI_API_KEY', setting('GEMINI_API_KEY'));
  const baseUrl = address('GEMINI_BASE_URL', setting('GEMINI_BASE_URL') ?? 'https://generativelanguage.googleapis.com');
  const latencyMs = integer('OFFLINE_LATENCY_MS', setting('OFFLINE_LATENCY_MS'), { fallback: 0, min: 0, max: 60_000 });
  const fallback = apiKey === null ? 'offline' : 'gemini';
  const name = oneOf('MODEL_PROVIDER', setting('MODEL_PROVIDER') ?? fallback, ['gemini', 'offline']);
  if (name === 'offline') return { name, latencyMs };
  if (apiKey !== null) return { name, apiKey, baseUrl, model: setting('GEMINI_MODEL') ?? GEMINI_MODEL };
  throw new ConfigInvalid({
    variable: 'MODEL_PROVIDER',
    value: name,
    accepted: '"offline", or "gemini" with GEMINI_API_KEY set,',
  });
}

/** Stable since September 2026, no end announced (ai.google.dev/gemini-api/docs/deprecations); 2.5 ends in December 2026. */
const GEMINI_MODEL = 'gemini-3.8-flash';

/** Longest time a timer of Node can wait, in milliseconds. */
const MAX_TIMER_MS = 2_147_483_647;

interface IntegerRange {
  readonly fallback: number;
  readonly min: number;
  readonly max: number;
}

function integer(variable: string, value: string | null, { fallback, min, max }: IntegerRange): number {
  if (value === null) return fallback;
  const number = /^\d{1,10}$/.test(value) ? Number(value) : Number.NaN;
  if (number >= min && number <= max) return number;
  throw new ConfigInvalid({ variable, value, accepted: `a whole number from ${min} to ${max}` });
}

function oneOf<T extends string>(variable: string, value: string, accepted: readonly T[]): T {
  const found = accepted.find((each) => each === value);
  if (found !== undefined) return found;
  throw new ConfigInvalid({ variable, value, accepted: accepted.map((each) => `"${each}"`).join(', ') });
}

/** A header would refuse other characters later, and show the whole value in its complaint. */
function secret(variable: string, value: string | null): string | null {
  if (value === null || /^[\x21-\x7e]+$/.test(value)) return value;
  throw new ConfigInvalid({ variable, value: HIDDEN, accepted: 'a key of visible ASCII characters without spaces' });
}

function address(variable: string, value: string): string {
  const url = URL.canParse(value) ? new URL(value) : null;
  const isPlain = url !== null && url.username + url.password === '' && !/[?#]/.test(value);
  if (isPlain && (url.protocol === 'https:' || url.protocol === 'http:')) return url.href.replace(/\/+$/, '');
  throw new ConfigInvalid({
    variable,
    // Credentials and queries hold secrets.
    value: /[@?#]/.test(value) ? HIDDEN : value,
    accepted: 'an http or https URL without credentials, query and fragment',
  });
}

const HIDDEN = '(hidden)';

/** Scheme, credentials, hosts, options. What is not encoded may not stand in a password: the client would cut it there. */
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
  keepAliveInterval: /^(-1|\d{1,9})$/,
  keepAliveTimeout: /^(-1|\d{1,9})$/,
};

/** What the client would only complain about, quoting the whole string, is refused here. */
function connectionString(variable: string, value: string): string {
  const { discover, hosts = '', options = '' } = CONNECTION_STRING.exec(value)?.groups ?? {};
  const isOneName = discover === undefined || !hosts.includes(',');
  const [wrong] = options.split('&').filter((option) => option !== '' && !isConnectionOption(option));
  if (hosts !== '' && isOneName && wrong === undefined) return value;
  const names = Object.keys(CONNECTION_OPTIONS).join(', ');
  const form = 'esdb://[user:password@]host[:port][,host[:port]]... with ?option=value&... or esdb+discover://name';
  const accepted =
    wrong === undefined ? form : `an option other than ${JSON.stringify(wrong)}, with a fitting value: ${names}`;
  throw new ConfigInvalid({ variable, value: withoutCredentials(value), accepted });
}

function isConnectionOption(option: string): boolean {
  const flat = (name: string): string => name.toLowerCase().replace(/[_-]/g, '');
  const [name = '', ...value] = option.split('=');
  const found = Object.entries(CONNECTION_OPTIONS).find(([each]) => flat(each) === flat(name));
  return found?.[1].test(value.join('=')) ?? false;
}

/** Whatever the text looks like, nothing before an `@` is shown. */
function withoutCredentials(value: string): string {
  const [, scheme = ''] = /^([a-z]+(?:\+[a-z]+)?:\/\/)/.exec(value) ?? [];
  const at = value.lastIndexOf('@');
  return at < 0 ? value : `${scheme}${HIDDEN}${value.slice(at)}`;
}

function origins(variable: string, value: string | null): readonly string[] {
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
