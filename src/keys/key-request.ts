/** The rules for a new key, over REST and in the terminal. */
import type { Scope } from './caller.js';
import { SCOPES, isScope } from './caller.js';
import { isCalendarDay } from '../system/calendar-day.js';
import { KeyRefused } from './errors.js';

/** A requested key. */
export interface KeyRequest {
  readonly name: string;
  readonly scopes: readonly Scope[];
  /** ISO 8601, UTC, milliseconds, or null if the key never expires. */
  readonly expiresAt: string | null;
}

/** The pattern of schemas/key-request.json. It has no colon, which marks scopes in lists of approvers. */
const KEY_NAME = /^[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}$/;

/** Names that paths of the API use for something else: `/api/keys/events`. */
const RESERVED: ReadonlySet<string> = new Set(['events']);

/** Longest lifetime of a key, in days: a century. */
const MAX_DAYS = 36_525;

const UNIT_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Whether a key may have this name. */
export function isKeyName(text: string): boolean {
  return KEY_NAME.test(text) && !RESERVED.has(text);
}

/** @throws {KeyRefused} the name, the scopes or the expiry break a rule */
export function assertKeyRequest({ name, scopes, expiresAt }: KeyRequest, now: string): void {
  if (!isKeyName(name)) {
    const form = 'a name is 1 to 64 letters, digits and . _ @ + -, begins with a letter or digit, and is not "events"';
    throw new KeyRefused({ field: 'name', reason: form });
  }
  if (scopes.length === 0) throw new KeyRefused({ field: 'scopes', reason: 'it needs a scope' });
  if (expiresAt !== null && expiresAt <= now) {
    throw new KeyRefused({ field: 'expires', reason: `it would have expired at ${expiresAt}` });
  }
}

/** The scopes, each once, in the order of `SCOPES`. @throws {KeyRefused} names the first unknown one */
export function scopesOf(texts: readonly string[]): readonly Scope[] {
  const unknown = texts.find((text) => !isScope(text));
  if (unknown === undefined) return SCOPES.filter((scope) => texts.includes(scope));
  const reason = `there is no scope ${JSON.stringify(unknown)}, there are ${SCOPES.join(', ')}`;
  throw new KeyRefused({ field: 'scopes', reason });
}

/** The time after a duration such as `30d`, `12h`, `90m` or `45s`, as ISO 8601. @throws {KeyRefused} */
export function expiryIn(text: string, now: string): string {
  const [, count, unit = ''] = /^([1-9]\d{0,9})([smhd])$/.exec(text) ?? [];
  const ms = Number(count) * (UNIT_MS[unit] ?? Number.NaN);
  if (ms <= MAX_DAYS * 86_400_000) return new Date(Date.parse(now) + ms).toISOString();
  const reason = `it expires after a time such as 30d, 12h, 90m or 45s, a century at most, not ${JSON.stringify(text)}`;
  throw new KeyRefused({ field: 'expires', reason });
}

/** Converts a time with an offset from UTC to ISO 8601 in UTC. @throws {KeyRefused} */
export function expiryAt(text: string): string {
  const isInstant = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)$/.test(text);
  const ms = isInstant && isCalendarDay(text.slice(0, 10)) ? Date.parse(text) : Number.NaN;
  if (!Number.isNaN(ms)) return new Date(ms).toISOString();
  const reason = `a time such as 2030-01-31T12:00:00Z is needed, not ${JSON.stringify(text)}`;
  throw new KeyRefused({ field: 'expires', reason });
}
