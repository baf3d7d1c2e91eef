/** The settings and their defaults. Only this file reads the environment. */
import { readFileSync } from 'node:fs';
import type { ProviderSettings, Providers } from './config-providers.js';
import { prices, providers } from './config-providers.js';
import { settingWarnings } from './config-warnings.js';
import { ConfigInvalid } from './errors.js';
import { MAX_MATERIAL_BYTES } from './graph/limits.js';
import type { ProxySettings, Variable, Variables } from './config-values.js';
import {
  address,
  addresses,
  connectionString,
  headerFields,
  hostNames,
  integer,
  modelName,
  oneOf,
  origins,
  plainText,
  plainUrl,
  secret,
} from './config-values.js';

export interface Config {
  readonly host: string;
  /** 0 picks a free port. */
  readonly port: number;
  /** Path of the service on the server that clients call, such as `/council`, or '' if it has that server to itself. */
  readonly basePath: string;
  readonly dataDir: string;
  /** The server that stores the log, or null for the embedded log in `dataDir`. */
  readonly eventStore: EventStoreSettings | null;
  readonly providers: Providers;
  /** Duration of a call to the offline model, in milliseconds. */
  readonly offlineLatencyMs: number;
  /** Proxies for calls to providers. */
  readonly proxies: ProxySettings;
  /** Prices of PRICES_FILE, or null if there is none. */
  readonly prices: Readonly<Record<string, unknown>> | null;
  /** The provider of vectors. `model` is its embedding model. Null computes vectors in the service. */
  readonly embeddings: ProviderSettings | null;
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
  /** Whether a document for Word ends with a line that says what made it. */
  readonly marksExports: boolean;
  /** Largest material of a run, in bytes of UTF-8. */
  readonly maxMaterialBytes: number;
  /** Days after their end after which runs are erased, or null if they are kept. */
  readonly retentionDays: number | null;
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
  /** Opens the metrics in place of a key, or null if there is none. Never shown. */
  readonly metricsToken: string | null;
  /** The collector that receives the traces of runs, or null if none does. */
  readonly traces: CollectorSettings | null;
  /** Whether webhooks may have private addresses. */
  readonly webhookAllowPrivate: boolean;
  readonly ledger: LedgerSettings;
  readonly logLevel: 'debug' | 'info' | 'warn' | 'error' | 'silent';
  /** Lines about variables that have no effect, such as misspelt settings. */
  readonly warnings: readonly string[];
}

export interface LedgerSettings {
  /** Name of the ledger in its checkpoints, or null for one with the identity of the log. */
  readonly origin: string | null;
  /** File with the key that signs checkpoints, or null for the one in the data directory. */
  readonly keyFile: string | null;
  /** Shortest time between two checkpoints, in milliseconds. */
  readonly intervalMs: number;
  /** Verifier keys and addresses of witnesses. */
  readonly witnesses: readonly { readonly vkey: string; readonly url: string }[];
}

/** Where traces go, by OTLP/HTTP. */
export interface CollectorSettings {
  /** Address without `/v1/traces`. */
  readonly endpoint: string;
  /** Fields of every request. Never shown, because they may hold a key. */
  readonly headers: Readonly<Record<string, string>>;
  /** How long an ended run waits for others that are sent in the same request, in milliseconds. */
  readonly delayMs: number;
}

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

export type WebSearchSettings =
  | { readonly name: 'tavily'; readonly apiKey: string; readonly baseUrl: string }
  | { readonly name: 'searxng'; readonly baseUrl: string };

type Environment = Readonly<Record<string, string | undefined>>;

/** Longest timer of Node, in milliseconds. */
const MAX_TIMER_MS = 2_147_483_647;
const MILLION = 1_000_000;

/**
 * Reads the settings. An absent or empty variable has its default.
 *
 * @param readText reads a file that a setting names
 * @throws {ConfigInvalid} names the variable, its value and the accepted values
 */
export function readConfig(environment: Environment, readText = readTextFile): Config {
  const known = new Set<string>();
  const variable: Variables = (name) => {
    known.add(name);
    return { name, value: environment[name] || null };
  };
  const modelProviders = providers(variable, readText);
  const config = {
    host: plainText(variable('HOST'), '127.0.0.1'),
    port: integer(variable('PORT'), { fallback: 8000, min: 0, max: 65_535 }),
    basePath: basePath(variable('BASE_PATH')),
    dataDir: plainText(variable('DATA_DIR'), './data'),
    eventStore: eventStore(variable),
    providers: modelProviders,
    offlineLatencyMs: integer(variable('OFFLINE_LATENCY_MS'), { fallback: 0, min: 0, max: 60_000 }),
    proxies: proxies(variable),
    prices: prices(variable('PRICES_FILE'), readText),
    embeddings: embeddings(modelProviders, variable),
    webSearch: webSearch(variable),
    pdfTimeoutMs: integer(variable('PDF_TIMEOUT_MS'), { fallback: 15_000, min: 1, max: 3_600_000 }),
    modelTimeoutMs: integer(variable('MODEL_TIMEOUT_MS'), { fallback: 120_000, min: 1, max: MAX_TIMER_MS }),
    modelMaxAttempts: integer(variable('MODEL_MAX_ATTEMPTS'), { fallback: 4, min: 1, max: 100 }),
    modelOutageMs: integer(variable('MODEL_OUTAGE_MS'), { fallback: 120_000, min: 0, max: MAX_TIMER_MS }),
    maxActiveRuns: integer(variable('MAX_ACTIVE_RUNS'), { fallback: 1_000, min: 1, max: MILLION }),
    maxModelCalls: integer(variable('MAX_MODEL_CALLS'), { fallback: 64, min: 1, max: MILLION }),
    marksExports: oneOf(variable('MARK_EXPORTS'), ['on', 'off'], 'on') === 'on',
    maxMaterialBytes: integer(variable('MAX_MATERIAL_BYTES'), {
      fallback: MAX_MATERIAL_BYTES,
      min: 0,
      max: MAX_MATERIAL_BYTES,
    }),
    retentionDays: integer(variable('RETENTION_DAYS'), { fallback: 0, min: 1, max: 36_500 }) || null,
    cluster: clusterTimes(variable),
    allowedHosts: hostNames(variable('ALLOWED_HOSTS')),
    corsOrigins: origins(variable('CORS_ORIGINS')),
    auth: oneOf(variable('AUTH'), ['on', 'off'], 'on'),
    limits: requestLimits(variable),
    trustedProxies: addresses(variable('TRUSTED_PROXIES')),
    metricsToken: secret(variable('METRICS_TOKEN')),
    traces: collector(variable),
    webhookAllowPrivate: oneOf(variable('WEBHOOK_ALLOW_PRIVATE'), ['on', 'off'], 'off') === 'on',
    ledger: {
      origin: ledgerOrigin(variable('LEDGER_ORIGIN')),
      keyFile: variable('LEDGER_KEY_FILE').value,
      intervalMs: 1_000 * integer(variable('CHECKPOINT_INTERVAL_S'), { fallback: 60, min: 1, max: 86_400 }),
      witnesses: witnesses(variable('LEDGER_WITNESSES'), readText),
    },
    logLevel: oneOf(variable('LOG_LEVEL'), ['debug', 'info', 'warn', 'error', 'silent'], 'info'),
  };
  return { ...config, warnings: settingWarnings(environment, known, modelProviders) };
}

/** The key that the terminal sends to a running service, or null if none is set. @throws {ConfigInvalid} */
export function readCouncilKey(environment: Environment): string | null {
  return secret({ name: 'COUNCIL_KEY', value: environment['COUNCIL_KEY'] || null });
}

/** First parts of the service's own paths. Below one of them, a path with and one without the base path could be equal. */
const OWN_PATHS = /^\/(?:api|console|ws|v1|mcp|metrics|ledger|favicon\.ico)(?:\/|$)/;

function basePath({ name, value }: Variable): string {
  if (value === null) return '';
  const isPath = /^(?:\/(?!\.\.?(?:\/|$))[\w.~-]+)+$/.test(value) && value.length <= 200;
  if (isPath && !OWN_PATHS.test(value)) return value;
  throw new ConfigInvalid({
    variable: name,
    value,
    accepted:
      'a path such as "/council" of letters, digits and -._~, without a slash at its end, that begins with none of ' +
      "the service's own names: api, console, favicon.ico, ledger, mcp, metrics, v1, ws",
  });
}

/** It also names the key of the ledger (C2SP signed-note). */
function ledgerOrigin({ name, value }: Variable): string | null {
  if (value === null || (/^[^\s\p{Z}\p{C}+]{1,200}$/u.test(value) && value.isWellFormed())) return value;
  throw new ConfigInvalid({
    variable: name,
    value,
    accepted: 'a name without spaces and "+", such as "example.com/council"',
  });
}

function witnesses({ name, value }: Variable, readText: typeof readTextFile): LedgerSettings['witnesses'] {
  if (value === null) return [];
  const refused = (line: string, accepted: string) => new ConfigInvalid({ variable: name, value: line, accepted });
  let text: string;
  try {
    text = readText(value);
  } catch {
    throw refused(value, 'a readable file');
  }
  const lines = text.split('\n').map((line) => line.trim());
  return lines
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const [vkey = '', address = '', ...rest] = line.split(/\s+/);
      const url = plainUrl(address);
      if (url === null || rest.length > 0) throw refused(line, 'lines "<vkey> <url>"');
      return { vkey, url };
    });
}

/** Checks the fields even without a collector. */
function collector(variable: Variables): CollectorSettings | null {
  const headers = headerFields(variable('OTEL_EXPORTER_OTLP_HEADERS'));
  const endpoint = address(variable('OTEL_EXPORTER_OTLP_ENDPOINT'));
  const delayMs = integer(variable('OTEL_BSP_SCHEDULE_DELAY'), { fallback: 5_000, min: 0, max: 3_600_000 });
  return endpoint === null ? null : { endpoint, headers, delayMs };
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

/** For texts only. The service asks for 768 of its 3,072 dimensions (ai.google.dev/gemini-api/docs/embeddings). */
const GEMINI_EMBEDDING_MODEL = 'gemini-embedding-001';

/**
 * The default provider embeds too, so that texts go where prompts go and nowhere else. An OpenAI-compatible server may
 * have no embedding model: unless one is named, the service computes the vectors.
 */
function embeddings({ configured, default: name }: Providers, variable: Variables): ProviderSettings | null {
  const gemini = modelName(variable('GEMINI_EMBEDDING_MODEL')) ?? GEMINI_EMBEDDING_MODEL;
  const openAi = modelName(variable('OPENAI_EMBEDDING_MODEL'));
  const chosen = configured.find((each) => each.name === name);
  if (chosen?.name === 'gemini') return withEmbeddingModel(chosen, 'GEMINI_EMBEDDING_MODEL', gemini);
  if (chosen?.name === 'openai' && openAi !== null) return withEmbeddingModel(chosen, 'OPENAI_EMBEDDING_MODEL', openAi);
  return null;
}

function withEmbeddingModel(provider: ProviderSettings, setting: string, model: string): ProviderSettings {
  return { ...provider, model, settings: { ...provider.settings, model: setting } };
}

/** By the names that other programs use, in either case. */
function proxies(variable: Variables): ProxySettings {
  const either = (name: string): Variable => {
    const [lower, upper] = [variable(name.toLowerCase()), variable(name)];
    return lower.value === null ? upper : lower;
  };
  return {
    http: proxyAddress(either('HTTP_PROXY')),
    https: proxyAddress(either('HTTPS_PROXY')),
    none: plainText(either('NO_PROXY'), ''),
  };
}

/** A proxy's URL may hold credentials, so it is never shown. */
function proxyAddress({ name, value }: Variable): string | null {
  if (value === null || (URL.canParse(value) && /^https?:$/.test(new URL(value).protocol))) return value;
  throw new ConfigInvalid({ variable: name, value: '(hidden)', accepted: 'the http or https URL of a proxy' });
}

function readTextFile(path: string): string {
  return readFileSync(path, 'utf8');
}

/** Tavily if it has a key, otherwise SearXNG if it has an address. */
function webSearch(variable: Variables): WebSearchSettings | null {
  const apiKey = secret(variable('TAVILY_API_KEY'));
  const baseUrl = address(variable('TAVILY_BASE_URL')) ?? 'https://api.tavily.com';
  const searxngUrl = address(variable('SEARXNG_URL'));
  if (apiKey !== null) return { name: 'tavily', apiKey, baseUrl };
  return searxngUrl === null ? null : { name: 'searxng', baseUrl: searxngUrl };
}
