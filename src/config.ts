/** The only reader of the environment: settings with their defaults, and readable refusals. */
import { ConfigInvalid } from './errors.js';
import {
  address,
  addresses,
  connectionString,
  hostNames,
  integer,
  modelName,
  oneOf,
  origins,
  plainText,
  secret,
} from './config-values.js';

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
  /** Processor time to extract the text of an uploaded PDF, in milliseconds. */
  readonly pdfTimeoutMs: number;
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
  /** `off`: without keys it may be reached from other machines too. Where keys were added it changes nothing. */
  readonly auth: 'on' | 'off';
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
    host: plainText('HOST', setting('HOST') ?? '127.0.0.1'),
    port: integer('PORT', setting('PORT'), { fallback: 8000, min: 0, max: 65_535 }),
    dataDir: plainText('DATA_DIR', setting('DATA_DIR') ?? './data'),
    eventStore: eventStore(setting),
    modelProvider: provider(setting),
    embeddings: embeddings(setting),
    webSearch: webSearch(setting),
    pdfTimeoutMs: integer('PDF_TIMEOUT_MS', setting('PDF_TIMEOUT_MS'), { fallback: 15_000, min: 1, max: 3_600_000 }),
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
    auth: oneOf('AUTH', setting('AUTH') ?? 'on', ['on', 'off']),
    limits: requestLimits(setting),
    trustedProxies: addresses('TRUSTED_PROXIES', setting('TRUSTED_PROXIES')),
    logLevel: oneOf('LOG_LEVEL', setting('LOG_LEVEL') ?? 'info', ['debug', 'info', 'warn', 'error', 'silent']),
  };
}

/** The key by which the terminal asks a running service; null: none. @throws {ConfigInvalid} */
export function readCouncilKey(environment: Environment): string | null {
  return secret('COUNCIL_KEY', environment['COUNCIL_KEY'] || null);
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

/** The defaults are meant to stop runaway programs only; normal use should never reach them. */
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
  const needed = name === 'gemini' ? 'GEMINI_API_KEY too' : `${OPENAI_NEEDS} too`;
  throw new ConfigInvalid({ variable: 'MODEL_PROVIDER', value: name, accepted: `"offline", or set ${needed}` });
}

/** Null: it cannot be chosen as things are set. */
function geminiSettings(setting: Setting): GeminiSettings | null {
  const apiKey = secret('GEMINI_API_KEY', setting('GEMINI_API_KEY'));
  const baseUrl = address('GEMINI_BASE_URL', setting('GEMINI_BASE_URL') ?? 'https://generativelanguage.googleapis.com');
  const model = modelName('GEMINI_MODEL', setting('GEMINI_MODEL')) ?? GEMINI_MODEL;
  return apiKey === null ? null : { name: 'gemini', apiKey, baseUrl, model };
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
  const geminiEmbedding =
    modelName('GEMINI_EMBEDDING_MODEL', setting('GEMINI_EMBEDDING_MODEL')) ?? GEMINI_EMBEDDING_MODEL;
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
