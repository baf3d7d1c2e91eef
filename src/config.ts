/** The only reader of the environment: settings with their defaults, and readable refusals (contract, section 1). */
import { ConfigInvalid } from './errors.js';

export interface Config {
  readonly host: string;
  /** 0 picks a free port. */
  readonly port: number;
  readonly dataDir: string;
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
