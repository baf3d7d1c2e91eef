/** Cross-origin access: only for the listed origins. */
import type { Context } from 'koa';

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
    'Access-Control-Allow-Headers':
      'Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID',
    'Access-Control-Max-Age': String(PREFLIGHT_MAX_AGE_SECONDS),
  };
}

// Headers of answers that clients act on: named in the OpenAPI document, and readable from listed origins.

interface HeaderText {
  readonly description: string;
  readonly type: 'string' | 'integer';
}

const ANSWER_HEADERS = {
  'Content-Location': { description: 'Path of what the request made or found.', type: 'string' },
  ETag: { description: 'Names this state of what was asked for, for conditional requests.', type: 'string' },
  Link: {
    description: '`<…>; rel="next"`: the next page, with the other parameters as they were sent. Absent on the last.',
    type: 'string',
  },
  Location: { description: 'Path of what was made.', type: 'string' },
  RateLimit: {
    description:
      'For each limit that holds for the request: `r` more pass now, another in `t` seconds ' +
      '(draft-ietf-httpapi-ratelimit-headers-10).',
    type: 'string',
  },
  'RateLimit-Policy': {
    description: 'The limits that hold for the request: `q` at once, given back evenly in `w` seconds.',
    type: 'string',
  },
  'Total-Count': { description: 'How many there are on all pages.', type: 'integer' },
  'Retry-After': { description: 'Seconds after which the request is worth another try.', type: 'integer' },
  'WWW-Authenticate': {
    description: 'How to send a key, and what was wrong with the one sent (RFC 6750).',
    type: 'string',
  },
} as const satisfies Readonly<Record<string, HeaderText>>;

export type AnswerHeader = keyof typeof ANSWER_HEADERS;

/** These headers as OpenAPI's map of header objects; empty for none. */
export function headerObjects(names: readonly AnswerHeader[]): Readonly<Record<string, object>> {
  return Object.fromEntries(
    names.map((name) => {
      const { description, type }: HeaderText = ANSWER_HEADERS[name];
      return [name, { description, schema: { type } }];
    }),
  );
}
