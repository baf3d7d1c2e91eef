/** How long a provider asks to wait before the next call. */
import { fieldOf } from './field.js';

/**
 * Milliseconds a `Retry-After` header asks for: whole seconds or an HTTP-date in GMT (RFC 9110, section 10.2.3), a date
 * in the past asks for none.
 *
 * @param now ISO 8601
 * @returns null for an absent or unreadable header
 */
export function waitOfHeader(retryAfter: string | null, now: string): number | null {
  if (retryAfter === null) return null;
  const text = retryAfter.trim();
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000;
  // Date.parse alone takes much for a date, "1.5" and "-5" too.
  const at = /^[A-Z][a-z]{2,8}, .* GMT$/.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(at) ? null : Math.max(0, at - Date.parse(now));
}

/**
 * Milliseconds that google.rpc.RetryInfo asks for among the details of an error's body: `retryDelay` is a number of
 * seconds with up to nine decimals and an `s`.
 *
 * @returns null without a readable one
 */
export function waitOfDetails(details: unknown): number | null {
  if (!Array.isArray(details)) return null;
  for (const detail of details as readonly unknown[]) {
    const type = fieldOf(detail, '@type');
    const delay = fieldOf(detail, 'retryDelay');
    if (typeof type !== 'string' || !type.endsWith('google.rpc.RetryInfo') || typeof delay !== 'string') continue;
    if (/^\d{1,9}(?:\.\d{1,9})?s$/.test(delay)) return Math.ceil(Number(delay.slice(0, -1)) * 1000);
  }
  return null;
}
