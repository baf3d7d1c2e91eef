/** The settings and their defaults. Only this file reads the environment. */
import { ConfigInvalid } from './errors.js';
import type { Variable } from './config-values.js';
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
  /** The server that stores the log, or null for the embedded log in `dataDir`. */
  readonly eventStore: EventStoreSettings | null;
  readonly modelProvider: ModelSettings;
  /** The provider of vectors. `model` is its embedding model. `offline` computes vectors in the service. */
  readonly embeddings: { readonly name: 'offline' } | GeminiSettings | OpenAiSettings;
  /** The search provider, or null if agents cannot search the web. */
  readonly webSearch: WebSearchSettings | null;
  /** Limit of processor time to extract the text of a PDF, in milliseconds. */
  readonly pdfTimeoutMs: number;
  /** Time limit of one model call, in milliseconds. */
  readonly modelTimeoutMs: number;
  /** Attempts of a node before its run fails. */
  readonly modelMaxAttempts: number;
  /** How long a node waits for a model server that is down, in milliseconds; with 0 an outage is a failed attempt. */
  readonly modelOutageMs: number;
  readonly maxActiveRuns: number;
  readonly maxModelCalls: number;
  /** Heartbeats of the instances on a shared log, or null on the embedded log. */
  readonly cluster: ClusterTimes | null;
  /** Host names that requests may use beside loopback names. If empty, any name, unless the service is bound to loopback. */
  readonly allowedHosts: readonly string[];
  /** Origins of pages that may call the service, as `scheme://host[:port]`. */
  readonly corsOrigins: readonly string[];
  /** `off` lets a service without keys listen on any address. It has no effect once a key was added. */
  readonly auth: 'on' | 'off';
  /** Limits of this instance per key, or per address. */
  readonly limits: RequestLimits;
  /** Addresses and ranges of proxies whose `X-Forwarded-For` is trusted. */
  readonly trustedProxies: readonly string[];
  readonly logLevel: 'debug' | 'info' | 'warn' | 'error' | 'silent';
}

export type ModelSettings = OfflineSettings | GeminiSettings | OpenAiSettings;

export interface ClusterTimes {
  /** Time between two heartbeats, in milliseconds. */
  readonly heartbeatMs: number;
  /** Time without heartbeats after which an instance counts as dead, in milliseconds. */
  readonly suspectAfterMs: number;
}

/** A limit is null if there is none. */
export interface RequestLimits {
  readonly requests: RateLimit | null;
  /** Starts of runs. */
  readonly runs: RateLimit | null;
  readonly unfinishedRuns: CountLimit | null;
}

export interface CountLimit {
  /** Largest number at a time. */
  readonly quota: number;
  /** Whether the operator has set it. A default does not apply on a loopback address. */
  readonly isSet: boolean;
}

export interface RateLimit extends CountLimit {
  /** Seconds in which the whole quota is available again. */
  readonly windowSeconds: number;
}

export interface EventStoreSettings {
  /** Connection string of an EventStoreDB or KurrentDB. Never shown, because it may contain a password. */
  readonly url: string;
  /** Prefix of the name of every stream. */
  readonly prefix: string;
}

export interface OfflineSettings {
  readonly name: 'offline';
  /** Duration of a call, in milliseconds. */
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
  /** Visible ASCII, never shown, or null if the server needs none. */
  readonly apiKey: string | null;
  /** As for Gemini. The service appends `/chat/completions`. */
  readonly baseUrl: string;
  readonly model: string;
}

export type WebSearchSettings =
  | { readonly name: 'tavily'; readonly apiKey: string; readonly baseUrl: string }
  | { readonly name: 'searxng'; readonly baseUrl: string };

type Environment = Readonly<Record<string, string | undefined>>;

type Variables = (name: string) => Variable;

/** Longest timer of Node, in milliseconds. */
const MAX_TIMER_MS = 2_147_483_647;
const MILLION = 1_000_000;

/**
 * Reads the settings. An absent or empty variable has its default.
 *
 * @throws {ConfigInvalid} names the variable, its value and the accepted values
 */
export function readConfig(environment: Environment): Config {
  const variable: Variables = (name) => ({ name, value: environment[name] || null });
  const modelProvider = provider(variable);
  return {
    host: plainText(variable('HOST'), '127.0.0.1'),
    port: integer(variable('PORT'), { fallback: 8000, min: 0, max: 65_535 }),
    dataDir: plainText(variable('DATA_DIR'), './data'),
    eventStore: eventStore(variable),
    modelProvider,
    embeddings: embeddings(modelProvider, variable),
    webSearch: webSearch(variable),
    pdfTimeoutMs: integer(variable('PDF_TIMEOUT_MS'), { fallback: 15_000, min: 1, max: 3_600_000 }),
    modelTimeoutMs: integer(variable('MODEL_TIMEOUT_MS'), { fallback: 120_000, min: 1, max: MAX_TIMER_MS }),
    modelMaxAttempts: integer(variable('MODEL_MAX_ATTEMPTS'), { fallback: 4, min: 1, max: 100 }),
    modelOutageMs: integer(variable('MODEL_OUTAGE_MS'), { fallback: 120_000, min: 0, max: MAX_TIMER_MS }),
    maxActiveRuns: integer(variable('MAX_ACTIVE_RUNS'), { fallback: 1_000, min: 1, max: MILLION }),
    maxModelCalls: integer(variable('MAX_MODEL_CALLS'), { fallback: 64, min: 1, max: MILLION }),
    cluster: clusterTimes(variable),
    allowedHosts: hostNames(variable('ALLOWED_HOSTS')),
    corsOrigins: origins(variable('CORS_ORIGINS')),
    auth: oneOf(variable('AUTH'), ['on', 'off'], 'on'),
    limits: requestLimits(variable),
    trustedProxies: addresses(variable('TRUSTED_PROXIES')),
    logLevel: oneOf(variable('LOG_LEVEL'), ['debug', 'info', 'warn', 'error', 'silent'], 'info'),
  };
}

/** The key that the terminal sends to a running service, or null if none is set. @throws {ConfigInvalid} */
export function readCouncilKey(environment: Environment): string | null {
  return secret({ name: 'COUNCIL_KEY', value: environment['COUNCIL_KEY'] || null });
}

function clusterTimes(variable: Variables): ClusterTimes | null {
  const heartbeatMs = integer(variable('HEARTBEAT_MS'), { fallback: 5_000, min: 50, max: 60_000 });
  const suspectAfterMs = integer(variable('SUSPECT_AFTER_MS'), {
    fallback: 6 * heartbeatMs,
    // With fewer missed heartbeats, a busy instance would count as dead.
    min: 3 * heartbeatMs,
    max: 3_600_000,
  });
  return variable('EVENTSTORE_URL').value === null ? null : { heartbeatMs, suspectAfterMs };
}

/** The defaults stop only runaway programs. Normal use does not reach them. */
function requestLimits(variable: Variables): RequestLimits {
  const isSet = (...names: readonly string[]): boolean => names.some((name) => variable(name).value !== null);
  const count = (name: string, fallback: number, min: number): number =>
    integer(variable(name), { fallback, min, max: MILLION });
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

/** Checks the prefix even without a server. */
function eventStore(variable: Variables): EventStoreSettings | null {
  const { name, value } = variable('EVENTSTORE_PREFIX');
  const prefix = value ?? '';
  if (!/^[a-z0-9]{0,64}$/.test(prefix)) {
    throw new ConfigInvalid({ variable: name, value: prefix, accepted: 'at most 64 lower-case letters and digits' });
  }
  const url = connectionString(variable('EVENTSTORE_URL'));
  return url === null ? null : { url, prefix };
}

/** Checks the settings of all providers, so that a typing error shows before the provider is chosen. */
function provider(variable: Variables): ModelSettings {
  const gemini = geminiSettings(variable);
  const openai = openAiSettings(variable);
  const latencyMs = integer(variable('OFFLINE_LATENCY_MS'), { fallback: 0, min: 0, max: 60_000 });
  const fallback = gemini === null ? 'offline' : 'gemini';
  const name = oneOf(variable('MODEL_PROVIDER'), ['gemini', 'openai', 'offline'], fallback);
  const chosen = { gemini, openai, offline: { name: 'offline' as const, latencyMs } }[name];
  if (chosen !== null) return chosen;
  const needed = name === 'gemini' ? 'GEMINI_API_KEY too' : `${OPENAI_NEEDS} too`;
  throw new ConfigInvalid({ variable: 'MODEL_PROVIDER', value: name, accepted: `"offline", or set ${needed}` });
}

/** Stable since September 2026, no end announced (ai.google.dev/gemini-api/docs/deprecations); 2.5 ends in December 2026. */
const GEMINI_MODEL = 'gemini-3.8-flash';
const GEMINI_BASE_URL = 'https://generativelanguage.googleapis.com';

/** The settings of Gemini, or null without a key. */
function geminiSettings(variable: Variables): GeminiSettings | null {
  const apiKey = secret(variable('GEMINI_API_KEY'));
  const baseUrl = address(variable('GEMINI_BASE_URL')) ?? GEMINI_BASE_URL;
  const model = modelName(variable('GEMINI_MODEL')) ?? GEMINI_MODEL;
  return apiKey === null ? null : { name: 'gemini', apiKey, baseUrl, model };
}

const OPENAI_BASE_URL = 'https://api.openai.com/v1';
const OPENAI_NEEDS = 'OPENAI_MODEL and OPENAI_API_KEY (or the OPENAI_BASE_URL of a server that needs no key)';

/**
 * The settings of an OpenAI-compatible server, or null without a model, or without the key that the vendor's server
 * needs. There is no default model, because models change too often.
 */
function openAiSettings(variable: Variables): OpenAiSettings | null {
  const apiKey = secret(variable('OPENAI_API_KEY'));
  const baseUrl = address(variable('OPENAI_BASE_URL')) ?? OPENAI_BASE_URL;
  const model = modelName(variable('OPENAI_MODEL'));
  if (model === null || (apiKey === null && baseUrl === OPENAI_BASE_URL)) return null;
  return { name: 'openai', apiKey, baseUrl, model };
}

/** For texts only. The service asks for 768 of its 3,072 dimensions (ai.google.dev/gemini-api/docs/embeddings). */
const GEMINI_EMBEDDING_MODEL = 'gemini-embedding-001';

/**
 * The provider of the model embeds too, so that texts go where prompts go and nowhere else. An OpenAI-compatible server
 * may have no embedding model: unless one is named, the service computes the vectors.
 */
function embeddings(chosen: ModelSettings, variable: Variables): Config['embeddings'] {
  const gemini = modelName(variable('GEMINI_EMBEDDING_MODEL')) ?? GEMINI_EMBEDDING_MODEL;
  const openAi = modelName(variable('OPENAI_EMBEDDING_MODEL'));
  if (chosen.name === 'gemini') return { ...chosen, model: gemini };
  if (chosen.name === 'openai' && openAi !== null) return { ...chosen, model: openAi };
  return { name: 'offline' };
}

/** Tavily if it has a key, otherwise SearXNG if it has an address. */
function webSearch(variable: Variables): WebSearchSettings | null {
  const apiKey = secret(variable('TAVILY_API_KEY'));
  const baseUrl = address(variable('TAVILY_BASE_URL')) ?? 'https://api.tavily.com';
  const searxngUrl = address(variable('SEARXNG_URL'));
  if (apiKey !== null) return { name: 'tavily', apiKey, baseUrl };
  return searxngUrl === null ? null : { name: 'searxng', baseUrl: searxngUrl };
}
