/** The only reader of the environment: settings with their defaults, and readable refusals (contract, section 1). */
import { ConfigInvalid } from './errors.js';

export interface Config {
  readonly host: string;
  /** 0 picks a free port. */
  readonly port: number;
  readonly dataDir: string;
  readonly modelProvider: 'offline';
  /** What a call to the offline model takes, in milliseconds. */
  readonly offlineLatencyMs: number;
  /** Deadline of one call to the model, in milliseconds. */
  readonly modelTimeoutMs: number;
  /** Tries before a node fails its run. */
  readonly modelMaxAttempts: number;
  readonly maxActiveRuns: number;
  readonly maxModelCalls: number;
  /** Origins that browsers may call from, as `scheme://host[:port]`. */
  readonly corsOrigins: readonly string[];
  readonly logLevel: 'debug' | 'info' | 'warn' | 'error' | 'silent';
}

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Reads the settings; an absent or empty variable means its default.
 *
 * @throws {ConfigInvalid} naming the variable, its value and what is accepted
 */
export function readConfig(environment: Environment): Config {
  const setting = (variable: string): string | null => environment[variable] || null;
  return {
    host: setting('HOST') ?? '127.0.0.1',
    port: integer('PORT', setting('PORT'), { fallback: 8000, min: 0, max: 65_535 }),
    dataDir: setting('DATA_DIR') ?? './data',
    modelProvider: oneOf('MODEL_PROVIDER', setting('MODEL_PROVIDER') ?? 'offline', ['offline']),
    offlineLatencyMs: integer('OFFLINE_LATENCY_MS', setting('OFFLINE_LATENCY_MS'), {
      fallback: 0,
      min: 0,
      max: 60_000,
    }),
    modelTimeoutMs: integer('MODEL_TIMEOUT_MS', setting('MODEL_TIMEOUT_MS'), {
      fallback: 120_000,
      min: 1,
      max: MAX_TIMER_MS,
    }),
    modelMaxAttempts: integer('MODEL_MAX_ATTEMPTS', setting('MODEL_MAX_ATTEMPTS'), { fallback: 4, min: 1, max: 100 }),
    maxActiveRuns: integer('MAX_ACTIVE_RUNS', setting('MAX_ACTIVE_RUNS'), { fallback: 1_000, min: 1, max: 1_000_000 }),
    maxModelCalls: integer('MAX_MODEL_CALLS', setting('MAX_MODEL_CALLS'), { fallback: 64, min: 1, max: 1_000_000 }),
    corsOrigins: origins('CORS_ORIGINS', setting('CORS_ORIGINS')),
    logLevel: oneOf('LOG_LEVEL', setting('LOG_LEVEL') ?? 'info', ['debug', 'info', 'warn', 'error', 'silent']),
  };
}

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
