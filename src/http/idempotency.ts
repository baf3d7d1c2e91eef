/** The Idempotency-Key: one key, one request, however often it is sent (contract, section 2). */
import type { Context } from 'koa';
import type { ReadBody } from './body.js';
import { brokenRules } from './problems.js';
import type { Edge } from './route.js';

/** Name of the header. */
export const IDEMPOTENCY_KEY = 'Idempotency-Key';

/** 1 to 255 visible ASCII characters, as a pattern of JSON Schema. */
export const KEY_PATTERN = '^[\\x21-\\x7e]{1,255}$';

/** How a request is known again: by its key, when it has one, and by what it asks for. */
export interface Keyed {
  readonly key: string | null;
  /** SHA-256 of the key. */
  readonly keyHash: string | null;
  /** SHA-256 of the body as canonical JSON: bodies are compared as JSON values, by what they ask for. */
  readonly bodyHash: string;
  /** The same of the body as it was sent, which is what earlier versions recorded. */
  readonly sentHash: string;
}

/** @throws {RequestRefused} 422 when the key is empty, too long, not visible ASCII, or sent more than once */
export function keyed(
  ctx: Context,
  { ambient: { sha256 }, canonical }: Edge,
  { plain, sent }: Pick<ReadBody<unknown>, 'plain' | 'sent'>,
): Keyed {
  const key = idempotencyKey(ctx);
  const bodyHash = sha256(canonical(plain));
  // Without a key nothing is compared.
  if (key === null) return { key, keyHash: null, bodyHash, sentHash: bodyHash };
  return { key, keyHash: sha256(key), bodyHash, sentHash: sha256(canonical(sent)) };
}

function idempotencyKey(ctx: Context): string | null {
  const keys = ctx.req.headersDistinct[IDEMPOTENCY_KEY.toLowerCase()];
  if (keys === undefined) return null;
  const [key = ''] = keys;
  if (keys.length === 1 && new RegExp(KEY_PATTERN).test(key)) return key;
  const msg = 'Header should be given once and hold 1 to 255 visible ASCII characters';
  throw brokenRules([{ loc: ['header', IDEMPOTENCY_KEY], msg, type: 'value_error' }]);
}

/** What a key is scoped by: method, and path without trailing slash, however its characters are escaped. */
export function keyScope(ctx: Context): { readonly method: string; readonly path: string } {
  const path = ctx.path.replace(/\/$/, '').split('/').map(escapedOnce).join('/');
  return { method: ctx.method, path };
}

function escapedOnce(part: string): string {
  try {
    return encodeURIComponent(decodeURIComponent(part));
  } catch {
    return part;
  }
}
