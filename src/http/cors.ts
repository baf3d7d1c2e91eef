/** Cross-origin access: none, but for the origins that are listed (contract, section 2). */
import type { Context } from 'koa';
import { ANSWER_HEADERS } from './answer-headers.js';

/** How long a browser may cache a preflight, in seconds: a changed list takes effect after that. */
const PREFLIGHT_MAX_AGE_SECONDS = 600;

/** Lets a listed origin read the answer; without a list no CORS header is sent at all. */
export function allowOrigin(ctx: Context, origins: readonly string[]): void {
  if (origins.length === 0) return;
  ctx.vary('Origin');
  const origin = ctx.get('Origin');
  if (!origins.includes(origin)) return;
  ctx.set('Access-Control-Allow-Origin', origin);
  ctx.set('Access-Control-Expose-Headers', ['Allow', ...Object.keys(ANSWER_HEADERS)].join(', '));
}

/** The headers that answer a listed origin's preflight; none for any other OPTIONS request. */
export function preflightHeaders(ctx: Context, allow: string): Readonly<Record<string, string>> {
  const isAllowed = ctx.response.headers['access-control-allow-origin'] !== undefined;
  if (!isAllowed || ctx.get('Access-Control-Request-Method') === '') return {};
  return {
    'Access-Control-Allow-Methods': allow,
    'Access-Control-Allow-Headers': 'Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID',
    'Access-Control-Max-Age': String(PREFLIGHT_MAX_AGE_SECONDS),
  };
}
