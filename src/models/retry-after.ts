/** How long a server asks to wait before the next request, in any form. */
import { fieldOf, isRecord, listOf } from '../system/untrusted.js';

type Headers = Readonly<Record<string, string | readonly string[] | undefined>>;

/**
 * The wait that a refusal asks for, in milliseconds: the longest of `retry-after-ms`, `Retry-After` (RFC 9110, section
 * 10.2.3; also with decimals) and google.rpc.RetryInfo; without any of them, when the exhausted rate limits are reset.
 *
 * @param headers with names in lower case
 * @param body the parsed body, or null
 * @param now ISO 8601
 * @returns null if the server asks for none
 */
export function requestedWaitMs(headers: Headers, body: unknown, now: string): number | null {
  const nowMs = Date.parse(now);
  const error = fieldOf(listOf(body)[0] ?? body, 'error');
  const all = { ...headersIn(error), ...headers };
  const asked = [
    durationMs(`${headerOf(all, 'retry-after-ms')}ms`, nowMs),
    durationMs(headerOf(all, 'retry-after'), nowMs),
    durationMs(retryDelayIn(error), nowMs),
  ].filter((each) => each !== null);
  return asked.length > 0 ? Math.max(...asked) : resetMs(all, nowMs);
}

/** OpenRouter puts the headers of a rate limit into the body: `error.metadata.headers`. */
function headersIn(error: unknown): Headers {
  const headers = fieldOf(fieldOf(error, 'metadata'), 'headers');
  if (!isRecord(headers)) return {};
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), String(value)]));
}

function headerOf(headers: Headers, name: string): string | null {
  const value = headers[name];
  return typeof value === 'string' ? value.trim() : (value?.[0]?.trim() ?? null);
}

/** `retryDelay` of google.rpc.RetryInfo: seconds with up to nine decimals and an `s`. */
function retryDelayIn(error: unknown): string | null {
  const infos = listOf(fieldOf(error, 'details')).filter((each) =>
    /google\.rpc\.RetryInfo$/.test(String(fieldOf(each, '@type'))),
  );
  const delay = fieldOf(infos[0], 'retryDelay');
  return typeof delay === 'string' ? delay : null;
}

/** From `x-ratelimit-reset-requests` and the like: the latest reset of a limit of which nothing remains, else the earliest reset. */
function resetMs(headers: Headers, nowMs: number): number | null {
  const resets = Object.keys(headers).flatMap((name) => {
    const isReset = name.length <= MAX_NAME_CHARS && /^(?:x-|anthropic-)?ratelimit-(?:.+-)?reset(?:-.+)?$/.test(name);
    const waitMs = isReset ? durationMs(headerOf(headers, name), nowMs) : null;
    if (waitMs === null) return [];
    const remaining = headerOf(headers, name.replace('reset', 'remaining'));
    return [{ waitMs, isExhausted: remaining !== null && Number(remaining) <= 0 }];
  });
  const exhausted = resets.filter(({ isExhausted }) => isExhausted).map(({ waitMs }) => waitMs);
  if (exhausted.length > 0) return Math.max(...exhausted);
  return resets.length > 0 ? Math.min(...resets.map(({ waitMs }) => waitMs)) : null;
}

/** Longest name of a header that is read. A server may put any names into a body. */
const MAX_NAME_CHARS = 100;

/** `6m0s`, `1.5s`, `250ms`, seconds, a time in seconds or milliseconds since 1970, ISO 8601, or a date of HTTP. */
function durationMs(text: string | null, nowMs: number): number | null {
  if (text === null) return null;
  if (/^\d{1,16}(?:\.\d{1,9})?$/.test(text)) return numberMs(Number(text), nowMs);
  // Date.parse alone takes too much for a date, even "-5".
  const atMs = /^\d{4}-\d\d-\d\dT|^[A-Z][a-z]{2,8}, .* GMT$/.test(text) ? Date.parse(text) : Number.NaN;
  if (!Number.isNaN(atMs)) return Math.max(0, atMs - nowMs);
  const parts = [...text.matchAll(/(\d{1,16}(?:\.\d{1,9})?)(ms|[dhms])/g)];
  if (parts.length === 0 || parts.map(([part]) => part).join('') !== text) return null;
  return Math.ceil(parts.reduce((sum, [, amount, unit = 's']) => sum + Number(amount) * (UNIT_MS[unit] ?? 0), 0));
}

/** Large numbers are times since 1970, not waits. */
function numberMs(number: number, nowMs: number): number {
  if (number > 1e11) return Math.max(0, number - nowMs);
  return number > 1e8 ? Math.max(0, Math.ceil(number * 1000 - nowMs)) : Math.ceil(number * 1000);
}

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
