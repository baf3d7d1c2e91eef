/** JSON bodies, checked in this order: media type, size, JSON, fields. */
import type { IncomingMessage } from 'node:http';
import { MIMEType } from 'node:util';
import type { Context } from 'koa';
import { absentFieldsOf } from '../api/absent-fields.js';
import { parseJson } from '../api/json-text.js';
import { RequestRefused } from '../api/problems.js';
import type { Described, RequestName, SchemaName, SchemaRegistry } from '../api/schemas.js';
import { validated } from '../api/validation.js';

/** Largest JSON body in bytes. */
const MAX_BODY_BYTES = 1024 * 1024;

export interface BodyRules {
  /** Whether the body is required; an optional body that is missing counts as an empty object. */
  readonly isRequired: boolean;
  /** Bounds of bodies with long lists. Default: 1 MiB, 512 deep. */
  readonly lists?: { readonly maxBytes: number; readonly maxDepth: number };
}

/** A body, with the forms by which the service recognises a repeated request. */
export interface ReadBody<T> {
  readonly value: T;
  /** The value without nulls and defaults. */
  readonly normalized: unknown;
  /** The JSON value that the client sent. */
  readonly sent: unknown;
}

export interface BodyReader<T> {
  readonly schema: SchemaName;
  readonly isRequired: boolean;
  /** Default: JSON. */
  readonly mediaType?: string;
  /** @throws {RequestRefused} 415, 413, 400 if it is cut off, 422 */
  read(ctx: Context): Promise<T>;
  /** Reads the body with its forms for comparison. */
  readToCompare(ctx: Context): Promise<ReadBody<T>>;
}

/** Reads a JSON body that must fit a schema; a field that is null counts as absent, unless its schema says otherwise. */
export function bodyOf<N extends RequestName>(
  schemas: SchemaRegistry,
  schema: N,
  { isRequired, lists }: BodyRules,
): BodyReader<Described<N>> {
  const check = checkOf(schemas, schema);
  const maxBytes = lists?.maxBytes ?? MAX_BODY_BYTES;
  const readToCompare = async (ctx: Context): Promise<ReadBody<Described<N>>> => {
    const bytes = isRequired || hasContent(ctx) ? await bodyBytes(ctx, maxBytes) : Buffer.alloc(0);
    const sent = isRequired || bytes.length > 0 ? parseJson(bytes, lists?.maxDepth) : {};
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
  return (sent) => {
    const value = validated(schemas.validator(schema), withoutNulls(sent), [source]);
    return { value, normalized: withoutDefaults(value), sent };
  };
}

function hasContent({ req: { headers } }: Context): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

async function bodyBytes(ctx: Context, maxBytes: number): Promise<Buffer> {
  assertMediaType(ctx);
  if (Number(ctx.get('Content-Length')) > maxBytes) throw tooLarge(maxBytes);
  return await bytesOf(ctx.req, maxBytes);
}

/** All bytes of a request. Past the limit the service reads no further, but keeps the connection open for the answer. */
function bytesOf(req: IncomingMessage, maxBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    const onData = (chunk: Buffer): void => {
      bytes += chunk.length;
      if (bytes <= maxBytes) return void chunks.push(chunk);
      req.off('data', onData).pause();
      reject(tooLarge(maxBytes));
    };
    // The client has disconnected, which is not a fault to log.
    const cutOff = (): void => reject(new RequestRefused('The body was cut off', { status: 400 }));
    req.on('data', onData).on('error', cutOff).on('close', cutOff);
    req.on('end', () => {
      req.off('error', cutOff).off('close', cutOff);
      resolve(Buffer.concat(chunks));
    });
  });
}

function assertMediaType(ctx: Context): void {
  assertUnencoded(ctx);
  if (!isJsonType(ctx.get('Content-Type'))) {
    throw new RequestRefused('Content-Type should be application/json in UTF-8', { status: 415 });
  }
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
