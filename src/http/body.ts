/** JSON bodies, checked in this order: media type, size, JSON, fields. */
import type { IncomingMessage } from 'node:http';
import { MIMEType } from 'node:util';
import type { Context } from 'koa';
import { absentFieldsOf, parseJson } from '../api/json-body.js';
import { RequestRefused } from '../api/problems.js';
import type { Described, RequestName, SchemaName, SchemaRegistry } from '../api/schemas.js';
import { validated } from '../api/validation.js';
import type { SharedBytes } from '../system/async/shared-bytes.js';
import type { System } from '../system/system.js';

/** Largest JSON body in bytes. */
const MAX_BODY_BYTES = 1024 * 1024;
/** Most bytes of JSON that a byte of a text takes, if every one is escaped. */
const ESCAPED_BYTES = 6;
/** How long a JSON body may take to arrive, in milliseconds. 1 MiB in that time needs 280 kbit/s. */
const MAX_BODY_MS = 30_000;

export interface BodyRules {
  /** Whether the body is required; an optional body that is missing counts as an empty object. */
  readonly isRequired: boolean;
  /** Default: 1 MiB. */
  readonly maxBytes?: number;
  /** How deep the JSON may be nested. Default: 512. */
  readonly maxDepth?: number;
}

/** A body, with the forms by which the service recognises a repeated request. */
export interface ReadBody<T> {
  readonly value: T;
  /** The value without nulls and defaults. */
  readonly normalized: unknown;
  /** The JSON value that the client sent. */
  readonly sent: unknown;
}

/** The largest body that starts a run, in bytes: with any material of so many. */
export function startBodyBytes(maxMaterialBytes: number): number {
  return MAX_BODY_BYTES + ESCAPED_BYTES * maxMaterialBytes;
}

export interface BodyReader<T> {
  readonly schema: SchemaName;
  readonly isRequired: boolean;
  /** Default: JSON. */
  readonly mediaType?: string;
  /** @throws {RequestRefused} 415, 413, 408 if it is late, 503 if too many arrive at once, 400 if it is cut off, 422 */
  read(ctx: Context): Promise<T>;
  /** Reads the body with its forms for comparison. */
  readToCompare(ctx: Context): Promise<ReadBody<T>>;
}

/** What reading bodies needs. */
export interface BodyDeps {
  readonly schemas: SchemaRegistry;
  readonly system: Pick<System, 'after'>;
  /** The limit of the bytes of all bodies that are being received. */
  readonly receiving: Pick<SharedBytes, 'update' | 'forget'>;
}

/** Reads a JSON body that must fit a schema; a field that is null counts as absent, unless its schema says otherwise. */
export function bodyOf<N extends RequestName>(
  http: BodyDeps,
  schema: N,
  { isRequired, maxBytes = MAX_BODY_BYTES, maxDepth }: BodyRules,
): BodyReader<Described<N>> {
  const check = checkOf(http.schemas, schema);
  const readToCompare = async (ctx: Context): Promise<ReadBody<Described<N>>> => {
    const bytes = isRequired || hasContent(ctx) ? await bodyBytes(ctx, maxBytes, http) : Buffer.alloc(0);
    const sent = isRequired || bytes.length > 0 ? parseJson(bytes, maxDepth) : {};
    return check(sent);
  };
  return { schema, isRequired, read: async (ctx) => (await readToCompare(ctx)).value, readToCompare };
}

/**
 * Checks a value that a client sent, as `bodyOf` checks a body.
 *
 * @param source where the value came from: the first part of each `loc`
 * @returns a function that throws {RequestRefused} 422 for a value that does not fit the schema
 */
export function checkOf<N extends RequestName>(
  schemas: SchemaRegistry,
  schema: N,
  source = 'body',
): (sent: unknown) => ReadBody<Described<N>> {
  const { withoutNulls, withoutDefaults } = absentFieldsOf(schemas, schema);
  const validator = schemas.validator(schema);
  return (sent) => {
    const value = validated(validator, withoutNulls(sent), [source]);
    return { value, normalized: withoutDefaults(value), sent };
  };
}

function hasContent({ req: { headers } }: Context): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

async function bodyBytes(ctx: Context, maxBytes: number, deps: BodyDeps): Promise<Buffer> {
  assertUnencoded(ctx);
  if (!isJsonType(ctx.get('Content-Type'))) {
    throw new RequestRefused('Content-Type should be application/json in UTF-8', { status: 415 });
  }
  if (Number(ctx.get('Content-Length')) > maxBytes) throw tooLarge(maxBytes);
  return await bytesOf(ctx.req, maxBytes, deps);
}

/**
 * All bytes of a request. They count against the limit of all bodies until the request is complete. The service drops the
 * bytes of a body that it refuses, but keeps the connection open for the answer.
 */
function bytesOf(req: IncomingMessage, maxBytes: number, { system, receiving }: BodyDeps): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    let received: Buffer = Buffer.alloc(0);
    let length = 0;
    let isRefused = false;
    const holder = { bytes: () => received.length, cutOff: () => refuse(tooManyBodies()) };
    const onData = (chunk: Buffer): void => {
      if (length + chunk.length > maxBytes) return refuse(tooLarge(maxBytes));
      received = appended(received, { length, chunk, maxBytes });
      length += chunk.length;
      receiving.update(holder);
    };
    const refuse = (why: RequestRefused): void => {
      isRefused = true;
      req.off('data', onData).resume();
      received = Buffer.alloc(0);
      receiving.forget(holder);
      reject(why);
    };
    // The client has disconnected, which is not a fault to log.
    const cutOff = (): void => refuse(new RequestRefused('The body was cut off', { status: 400 }));
    const cancelLate = system.after(MAX_BODY_MS, () => {
      // The rest of a refused body has this time too.
      if (isRefused) req.destroy();
      else refuse(late());
    });
    req.on('data', onData).on('error', cutOff).on('close', cutOff).on('close', cancelLate);
    req.on('end', () => {
      req.off('error', cutOff).off('close', cutOff);
      cancelLate();
      receiving.forget(holder);
      resolve(received.subarray(0, length));
    });
  });
}

/**
 * A chunk after the first `length` bytes of a buffer. The buffer grows to twice its size, because a buffer for each chunk of
 * a few bytes needs many times their memory.
 */
function appended(
  buffer: Buffer,
  { length, chunk, maxBytes }: { readonly length: number; readonly chunk: Buffer; readonly maxBytes: number },
): Buffer {
  if (length === 0) return chunk;
  const needed = length + chunk.length;
  let larger = buffer;
  if (needed > buffer.length) {
    larger = Buffer.allocUnsafeSlow(Math.max(needed, Math.min(maxBytes, 2 * buffer.length)));
    buffer.copy(larger, 0, 0, length);
  }
  chunk.copy(larger, length);
  return larger;
}

/** @throws {RequestRefused} 415 for a body in a Content-Encoding */
export function assertUnencoded(ctx: Context): void {
  const coding = ctx.get('Content-Encoding').trim().toLowerCase();
  if (coding !== '' && coding !== 'identity') {
    throw new RequestRefused(`Content-Encoding "${coding}" is not supported: send the body unencoded`, {
      status: 415,
      headers: { 'Accept-Encoding': 'identity' },
    });
  }
}

function isJsonType(text: string): boolean {
  try {
    const { essence, params } = new MIMEType(text);
    return essence === 'application/json' && /^utf-?8$/i.test(params.get('charset') ?? 'utf-8');
  } catch {
    return false;
  }
}

function tooLarge(maxBytes: number): RequestRefused {
  return new RequestRefused(`The body is too large: the limit is ${maxBytes} bytes`, { status: 413 });
}

/** The refusal of a body that does not arrive in time. */
function late(): RequestRefused {
  const headers = { Connection: 'close' };
  return new RequestRefused(`The body did not arrive within ${MAX_BODY_MS / 1_000} s`, { status: 408, headers });
}

/** The refusal of the largest body when too many bytes arrive at once. */
function tooManyBodies(): RequestRefused {
  const headers = { 'Retry-After': '2' };
  return new RequestRefused('Too many requests are being received: try again', { status: 503, headers });
}
