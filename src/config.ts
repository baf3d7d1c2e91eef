/** The only reader of the environment: settings with their defaults, and readable refusals (contract, section 1). */
import { ConfigInvalid } from './errors.js';
import { isAddressOrRange } from './system/address-list.js';
import { hostNameOf } from './system/host-name.js';

export interface Config {
  readonly host: string;
  /** 0 picks a free port. */
  readonly port: number;
  readonly dataDir: string;
  /** The server that keeps the record; null: the embedded log in `dataDir` does. */
  readonly eventStore: EventStoreSettings | null;
  readonly modelProvider: ModelSettings;
  /** What makes vectors of texts. `model` is the one of embeddings. */
  readonly embeddings: OfflineEmbeddingsSettings | GeminiSettings | OpenAiSettings;
  /** Null: agents cannot search the web. */
  readonly webSearch: TavilySettings | SearxngSettings | null;
  /** Deadline of one call to the model, in milliseconds. */
  readonly modelTimeoutMs: number;
  /** Tries before a node fails its run. */
  readonly modelMaxAttempts: number;
  /** How long an outage of a model's server is waited out, in milliseconds; 0: it is a failure like any other. */
  readonly modelOutageMs: number;
  readonly maxActiveRuns: number;
  readonly maxModelCalls: number;
  /** How instances on one log know of each other; null where there is one alone. */
  readonly cluster: ClusterTimes | null;
  /** Names the service is called by, beside loopback ones; none: any, but where it is bound to loopback. */
  readonly allowedHosts: readonly string[];
  /** Origins that browsers may call from, as `scheme://host[:port]`. */
  readonly corsOrigins: readonly string[];
  /** What a key, or an address, may ask of this instance. */
  readonly limits: RequestLimits;
  /** Addresses and ranges of proxies whose word on a client's address is taken. */
  readonly trustedProxies: readonly string[];
  readonly logLevel: 'debug' | 'info' | 'warn' | 'error' | 'silent';
}

export type ModelSettings = OfflineSettings | GeminiSettings | OpenAiSettings;

export interface ClusterTimes {
  /** Time between two beats, in milliseconds. */
  readonly heartbeatMs: number;
  /** Silence after which an instance is taken for dead, in milliseconds. */
  readonly suspectAfterMs: number;
}

/** Null: there is no such limit. */
export interface RequestLimits {
  readonly requests: RateLimit | null;
  /** Starts of runs. */
  readonly runs: RateLimit | null;
  readonly unfinishedRuns: CountLimit | null;
}

export interface CountLimit {
  /** How many at once. */
  readonly quota: number;
  /** Whether it was set; a default does not hold on a loopback address. */
  readonly isSet: boolean;
}

export interface RateLimit extends CountLimit {
  /** In which the whole quota comes back. */
  readonly windowSeconds: number;
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

/** Any server that speaks OpenAI's chat completions. */
export interface OpenAiSettings {
  readonly name: 'openai';
  /** Visible ASCII, never shown; null: the server asks for none. */
  readonly apiKey: string | null;
  /** As of Gemini; `/chat/completions` is put after it. */
  readonly baseUrl: string;
  readonly model: string;
}

/** Vectors are computed here, and nothing is sent. */
export interface OfflineEmbeddingsSettings {
  readonly name: 'offline';
}

export interface TavilySettings {
  readonly name: 'tavily';
  readonly apiKey: string;
  readonly baseUrl: string;
}

export interface SearxngSettings {
  readonly name: 'searxng';
  readonly baseUrl: string;
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
    embeddings: embeddings(setting),
    webSearch: webSearch(setting),
    modelTimeoutMs: integer('MODEL_TIMEOUT_MS', setting('MODEL_TIMEOUT_MS'), {
      fallback: 120_000,
      min: 1,
      max: MAX_TIMER_MS,
    }),
    modelMaxAttempts: integer('MODEL_MAX_ATTEMPTS', setting('MODEL_MAX_ATTEMPTS'), { fallback: 4, min: 1, max: 100 }),
    modelOutageMs: integer('MODEL_OUTAGE_MS', setting('MODEL_OUTAGE_MS'), {
      fallback: 120_000,
      min: 0,
      max: MAX_TIMER_MS,
    }),
    maxActiveRuns: integer('MAX_ACTIVE_RUNS', setting('MAX_ACTIVE_RUNS'), { fallback: 1_000, min: 1, max: 1_000_000 }),
    maxModelCalls: integer('MAX_MODEL_CALLS', setting('MAX_MODEL_CALLS'), { fallback: 64, min: 1, max: 1_000_000 }),
    cluster: clusterTimes(setting),
    allowedHosts: hostNames('ALLOWED_HOSTS', setting('ALLOWED_HOSTS')),
    corsOrigins: origins('CORS_ORIGINS', setting('CORS_ORIGINS')),
    limits: requestLimits(setting),
    trustedProxies: addresses('TRUSTED_PROXIES', setting('TRUSTED_PROXIES')),
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

/** The defaults are meant to stop programs that run wild, and to be met by nobody else. */
function requestLimits(setting: Setting): RequestLimits {
  const isSet = (...variables: readonly string[]): boolean => variables.some((each) => setting(each) !== null);
  const count = (variable: string, fallback: number, min: number): number =>
    integer(variable, setting(variable), { fallback, min, max: 1_000_000 });
  const perSecond = count('MAX_REQUESTS_PER_SECOND', 1_000, 0);
  const burst = count('MAX_REQUEST_BURST', Math.max(1, 30 * perSecond), 1);
  const perMinute = count('MAX_RUNS_PER_MINUTE', 6_000, 0);
  const unfinished = count('MAX_UNFINISHED_RUNS', 10_000, 0);
  const requests = {
    quota: burst,
    windowSeconds: burst / perSecond,
    isSet: isSet('MAX_REQUESTS_PER_SECOND', 'MAX_REQUEST_BURST'),
  };
  return {
    requests: perSecond === 0 ? null : requests,
    runs: perMinute === 0 ? null : { quota: perMinute, windowSeconds: 60, isSet: isSet('MAX_RUNS_PER_MINUTE') },
    unfinishedRuns: unfinished === 0 ? null : { quota: unfinished, isSet: isSet('MAX_UNFINISHED_RUNS') },
  };
}

/** The prefix is checked without a server too. */
function eventStore(setting: Setting): EventStoreSettings | null {
  const prefix = setting('EVENTSTORE_PREFIX') ?? '';
  if (!/^[a-z0-9]{0,64}$/.test(prefix)) {
    const accepted = 'a text of lower-case letters and digits, 64 at most';
    throw new ConfigInvalid({ variable: 'EVENTSTORE_PREFIX', value: prefix, accepted });
  }
  const url = setting('EVENTSTORE_URL');
  return url === null ? null : { url: connectionString('EVENTSTORE_URL', url), prefix };
}

/** Every setting is checked, also those of the providers that are not chosen: a typing error shows when it is made. */
function provider(setting: Setting): ModelSettings {
  const gemini = geminiSettings(setting);
  const openAi = openAiSettings(setting);
  const latencyMs = integer('OFFLINE_LATENCY_MS', setting('OFFLINE_LATENCY_MS'), { fallback: 0, min: 0, max: 60_000 });
  const fallback = gemini === null ? 'offline' : 'gemini';
  const name = oneOf('MODEL_PROVIDER', setting('MODEL_PROVIDER') ?? fallback, ['gemini', 'openai', 'offline']);
  const chosen = { gemini, openai: openAi, offline: { name: 'offline' as const, latencyMs } }[name];
  if (chosen !== null) return chosen;
  const needed = name === 'gemini' ? '"gemini" with GEMINI_API_KEY' : `"openai" with ${OPENAI_NEEDS}`;
  throw new ConfigInvalid({ variable: 'MODEL_PROVIDER', value: name, accepted: `"offline", or ${needed} set,` });
}

/** Null: it cannot be chosen as things are set. */
function geminiSettings(setting: Setting): GeminiSettings | null {
  const apiKey = secret('GEMINI_API_KEY', setting('GEMINI_API_KEY'));
  const baseUrl = address('GEMINI_BASE_URL', setting('GEMINI_BASE_URL') ?? 'https://generativelanguage.googleapis.com');
  return apiKey === null ? null : { name: 'gemini', apiKey, baseUrl, model: setting('GEMINI_MODEL') ?? GEMINI_MODEL };
}

/** The vendor asks for a key, other servers may not. Models change too often for a default. */
function openAiSettings(setting: Setting): OpenAiSettings | null {
  const apiKey = secret('OPENAI_API_KEY', setting('OPENAI_API_KEY'));
  const baseUrl = address('OPENAI_BASE_URL', setting('OPENAI_BASE_URL') ?? OPENAI_BASE_URL);
  const model = modelName('OPENAI_MODEL', setting('OPENAI_MODEL'));
  if (model === null || (apiKey === null && baseUrl === OPENAI_BASE_URL)) return null;
  return { name: 'openai', apiKey, baseUrl, model };
}

const OPENAI_NEEDS = 'OPENAI_MODEL and OPENAI_API_KEY (or the OPENAI_BASE_URL of a server that asks for no key)';

/**
 * Of the provider that answers, so that texts go where prompts go and nowhere else. An OpenAI-compatible server need
 * not have a model of embeddings: without one named, as without a provider, vectors are computed here.
 */
function embeddings(setting: Setting): Config['embeddings'] {
  const geminiEmbedding = setting('GEMINI_EMBEDDING_MODEL') ?? GEMINI_EMBEDDING_MODEL;
  const openAiEmbedding = modelName('OPENAI_EMBEDDING_MODEL', setting('OPENAI_EMBEDDING_MODEL'));
  const chosen = provider(setting);
  if (chosen.name === 'gemini') return { ...chosen, model: geminiEmbedding };
  if (chosen.name === 'openai' && openAiEmbedding !== null) return { ...chosen, model: openAiEmbedding };
  return { name: 'offline' };
}

/** For texts alone, 768 of its 3,072 dimensions asked for (ai.google.dev/gemini-api/docs/embeddings). */
const GEMINI_EMBEDDING_MODEL = 'gemini-embedding-001';

/** Tavily where there is a key, else SearXNG where there is an address. */
function webSearch(setting: Setting): Config['webSearch'] {
  const apiKey = secret('TAVILY_API_KEY', setting('TAVILY_API_KEY'));
  const baseUrl = address('TAVILY_BASE_URL', setting('TAVILY_BASE_URL') ?? 'https://api.tavily.com');
  const searxng = setting('SEARXNG_URL');
  const searxngUrl = searxng === null ? null : address('SEARXNG_URL', searxng);
  if (apiKey !== null) return { name: 'tavily', apiKey, baseUrl };
  return searxngUrl === null ? null : { name: 'searxng', baseUrl: searxngUrl };
}

const OPENAI_BASE_URL = 'https://api.openai.com/v1';

/** Stable since September 2026, no end announced (ai.google.dev/gemini-api/docs/deprecations); 2.5 ends in December 2026. */
const GEMINI_MODEL = 'gemini-3.8-flash';

/** Longest time a timer of Node can wait, in milliseconds. */
const MAX_TIMER_MS = 2_147_483_647;

// What settings may hold: each text becomes a value, or is refused in a line that names the variable and never a
// secret.

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
  // What is longer than a word may be a key in the wrong place.
  const shown = /^(?!sk-)[\w-]{1,12}$/.test(value) ? value : HIDDEN;
  throw new ConfigInvalid({ variable, value: shown, accepted: accepted.map((each) => `"${each}"`).join(', ') });
}

/** A header would refuse other characters later, and show the whole value in its complaint. */
function secret(variable: string, value: string | null): string | null {
  if (value === null || /^[\x21-\x7e]+$/.test(value)) return value;
  throw new ConfigInvalid({ variable, value: HIDDEN, accepted: 'a key of visible ASCII characters without spaces' });
}

function modelName(variable: string, value: string | null): string | null {
  if (value === null || /^[\x21-\x7e]{1,200}$/.test(value)) return value;
  throw new ConfigInvalid({ variable, value, accepted: 'a name of 1 to 200 visible ASCII characters' });
}

function address(variable: string, value: string): string {
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
function connectionString(variable: string, value: string): string {
  const { discover, hosts = '', options = '' } = CONNECTION_STRING.exec(value)?.groups ?? {};
  const isOneName = discover === undefined || !hosts.includes(',');
  const [wrong] = options.split('&').filter((option) => option !== '' && !isConnectionOption(option));
  const isPort = (host: string): boolean =>
    /^[^:]+$/.test(host) || (/:0*([1-9]\d{0,4})$/.test(host) && Number(host.split(':')[1]) < 65_536);
  if (hosts !== '' && hosts.split(',').every(isPort) && isOneName && wrong === undefined) return value;
  const names = Object.keys(CONNECTION_OPTIONS).join(', ');
  const form = 'esdb://[user:password@]host[:port][,host[:port]]... with ?option=value&... or esdb+discover://name';
  const accepted =
    wrong === undefined
      ? form
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
function withoutSecrets(value: string): string {
  const [, scheme = ''] = /^([a-z]+(?:\+[a-z]+)?:\/\/)/.exec(value) ?? [];
  const at = value.lastIndexOf('@');
  const shown = at < 0 ? value : `${scheme}${HIDDEN}${value.slice(at)}`;
  return shown.replace(/=[^&]*/g, '=…');
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

function addresses(variable: string, value: string | null): readonly string[] {
  const texts = value === null ? [] : value.split(',').map((each) => each.trim());
  if (texts.every(isAddressOrRange)) return texts;
  const accepted = 'a comma-separated list of addresses and ranges such as 10.0.0.7, 172.16.0.0/12';
  throw new ConfigInvalid({ variable, value: value ?? '', accepted });
}

/** Names of hosts in the form of `hostNameOf`. A port or a pattern would be taken for a name that nobody has. */
function hostNames(variable: string, value: string | null): readonly string[] {
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
