/** Cross-origin access for the listed origins. */
import type { Context } from 'koa';

/** How long a browser may cache a preflight, in seconds: after that a changed list takes effect. */
const PREFLIGHT_MAX_AGE_SECONDS = 600;

/** Lets a listed origin read the answer; without a list sends no CORS header. */
export function allowOrigin(ctx: Context, origins: readonly string[]): void {
  if (origins.length === 0) return;
  ctx.vary('Origin');
  const origin = ctx.get('Origin');
  if (!origins.includes(origin)) return;
  ctx.set('Access-Control-Allow-Origin', origin);
  ctx.set('Access-Control-Expose-Headers', ['Allow', ...Object.keys(ANSWER_HEADERS)].join(', '));
}

/** The headers of the answer to a listed origin's preflight; empty for any other OPTIONS request. */
export function preflightHeaders(ctx: Context, allow: string): Readonly<Record<string, string>> {
  const isAllowed = ctx.response.headers['access-control-allow-origin'] !== undefined;
  if (!isAllowed || ctx.get('Access-Control-Request-Method') === '') return {};
  return {
    'Access-Control-Allow-Methods': allow,
    'Access-Control-Allow-Headers': allowedHeaders(ctx).join(', '),
    'Access-Control-Max-Age': String(PREFLIGHT_MAX_AGE_SECONDS),
  };
}

/** Headers that the service reads. */
const READ = [
  ...['Authorization', 'Content-Type', 'Idempotency-Key', 'If-Match', 'If-None-Match', 'Last-Event-ID'],
  ...['MCP-Protocol-Version', 'Mcp-Method', 'Mcp-Name'],
];

const KNOWN: ReadonlySet<string> = new Set(READ.map((name) => name.toLowerCase()));

/** These, and all others that the page asks for: SDKs send headers of their own, which have no effect here. */
function allowedHeaders(ctx: Context): readonly string[] {
  const asked = ctx.get('Access-Control-Request-Headers').toLowerCase().split(',');
  const names = asked.map((name) => name.trim()).filter((name) => /^[a-z0-9-]+$/.test(name));
  return [...READ, ...[...new Set(names)].filter((name) => !KNOWN.has(name))];
}

// Headers that clients act on: the OpenAPI document names them, and listed origins may read them.

interface HeaderText {
  readonly description: string;
  readonly type: 'string' | 'integer';
}

const ANSWER_HEADERS = {
  'Council-Run-Id': { description: 'The id of the run.', type: 'string' },
  'Content-Disposition': { description: 'Name of the file (RFC 6266).', type: 'string' },
  'Content-Location': { description: 'Path of the created or found resource.', type: 'string' },
  ETag: { description: 'Version of the resource, for conditional requests.', type: 'string' },
  Link: {
    description: '`<…>; rel="next"`: the next page, with the same parameters. Absent on the last page.',
    type: 'string',
  },
  Location: { description: 'Path of the created resource.', type: 'string' },
  RateLimit: {
    description:
      'For each limit of the request: `r` more requests pass now, another one in `t` seconds ' +
      '(draft-ietf-httpapi-ratelimit-headers-10).',
    type: 'string',
  },
  'RateLimit-Policy': {
    description: 'The limits of the request: `q` requests at once, refilled evenly in `w` seconds.',
    type: 'string',
  },
  'Total-Count': { description: 'Number of items on all pages.', type: 'integer' },
  'Retry-After': { description: 'Seconds after which the client may retry.', type: 'integer' },
  'WWW-Authenticate': {
    description: 'How to send a key, and what was wrong with the sent one (RFC 6750).',
    type: 'string',
  },
} as const satisfies Readonly<Record<string, HeaderText>>;

export type AnswerHeader = keyof typeof ANSWER_HEADERS;

/** These headers as OpenAPI's map of header objects. */
export function headerObjects(names: readonly AnswerHeader[]): Readonly<Record<string, object>> {
  return Object.fromEntries(
    names.map((name) => {
      const { description, type }: HeaderText = ANSWER_HEADERS[name];
      return [name, { description, schema: { type } }];
    }),
  );
}
