/** Query parameters: numbers in decimal digits or texts, each at most once, with the defaults of their schema. */
import type { Context } from 'koa';
import type { FieldError } from '../generated/schemas.js';
import { brokenRules } from '../api/problems.js';
import type { Described, RequestName, SchemaRegistry } from '../api/schemas.js';
import { validated } from '../api/validation.js';

export interface QueryReader<T> {
  readonly schema: RequestName;
  /** @throws {RequestRefused} 422 */
  read(ctx: Context): T;
}

/** Reads a query whose parameters are the schema's properties; ignores others. */
export function queryOf<N extends RequestName>(schemas: SchemaRegistry, schema: N): QueryReader<Described<N>> {
  const properties = Object.entries(schemas.document(schema).properties ?? {});
  return {
    schema,
    read(ctx) {
      const sent = new URLSearchParams(ctx.querystring);
      const errors: FieldError[] = [];
      const values: Record<string, unknown> = {};
      for (const [name, property] of properties) {
        // Some clients write lists with brackets, which would be ignored silently as another parameter.
        const bracketed = [...sent.keys()].filter((each) => each.startsWith(`${name}[`));
        if (bracketed.length > 0) errors.push(notAList(name));
        const texts = sent.getAll(name);
        const type = String(property['type']);
        const read = READERS[type] ?? wholeNumber;
        const value = texts.length === 0 ? property.default : read(texts);
        if (value === null) errors.push(unreadable(name, type, texts));
        else if (value !== undefined) values[name] = value;
      }
      if (errors.length > 0) throw brokenRules(errors);
      return validated(schemas.validator(schema), values, 'query');
    },
  };
}

function notAList(name: string): FieldError {
  return { loc: ['query', name], msg: 'Parameter should be given once, without brackets', type: 'repeated' };
}

/** The text, or null if there are several; the schema checks which texts are allowed. */
function oneText([text = '', ...others]: readonly string[]): string | null {
  return others.length === 0 ? text : null;
}

/** The number, or null if it is none. Larger than any double counts as a number, to be reported as out of range. */
function wholeNumber(texts: readonly string[]): number | null {
  return numberIn(texts, /^-?[0-9]+$/);
}

function decimal(texts: readonly string[]): number | null {
  return numberIn(texts, /^-?[0-9]+(\.[0-9]+)?$/);
}

function numberIn(texts: readonly string[], form: RegExp): number | null {
  const [text = ''] = texts;
  if (texts.length !== 1 || !form.test(text)) return null;
  const value = Math.max(-Number.MAX_VALUE, Math.min(Number.MAX_VALUE, Number(text)));
  // Minus zero is zero.
  return value + 0;
}

/** Readers by the type of the parameter's schema. */
const READERS: Readonly<Record<string, (texts: readonly string[]) => string | number | null>> = {
  string: oneText,
  number: decimal,
  integer: wholeNumber,
};

function unreadable(name: string, type: string, texts: readonly string[]): FieldError {
  const loc = ['query', name];
  if (texts.length > 1) return { loc, msg: 'Parameter should be given once', type: 'repeated' };
  if (type === 'number') return { loc, msg: 'Input should be a valid number in decimal digits', type: 'float_parsing' };
  return { loc, msg: 'Input should be a valid integer in decimal digits', type: 'int_parsing' };
}

// Pages of lists, each with a link to the next page (RFC 8288).

interface Page {
  readonly limit: number;
  readonly offset: number;
}

/** A page of a list, and its headers. */
export interface SentPage<T> {
  readonly items: readonly T[];
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * Requests one item more than the page holds, to know whether more follow.
 *
 * @param link the link to the next page; by default by offset
 */
export async function pageOf<T, P extends Page>(
  ctx: Context,
  page: P,
  list: (page: P) => Promise<readonly T[]>,
  link: (last: T) => Readonly<Record<string, string>> = () => nextLink(ctx, page),
): Promise<SentPage<T>> {
  const found = await list({ ...page, limit: page.limit + 1 });
  const items = found.slice(0, page.limit);
  const last = items.at(-1);
  return { items, headers: found.length > page.limit && last !== undefined ? link(last) : {} };
}

/** `Link` to the next page: the requested path with every other parameter of the query. */
export function nextLink(ctx: Context, { limit, offset }: Page): Readonly<Record<'Link', string>> {
  return linkTo(ctx, { limit, offset: offset + limit });
}

/** `Link` to the page that begins at a cursor. */
export function cursorLink(ctx: Context, limit: number, cursor: string): Readonly<Record<'Link', string>> {
  return linkTo(ctx, { limit, offset: null, cursor });
}

/** `Link` to the requested path with other parameters; those that are null are removed. */
export function linkTo(
  ctx: Context,
  parameters: Readonly<Record<string, string | number | null>>,
): Readonly<Record<'Link', string>> {
  const query = new URLSearchParams(ctx.querystring);
  for (const [name, value] of Object.entries(parameters)) {
    if (value === null) query.delete(name);
    else query.set(name, String(value));
  }
  return { Link: `<${ctx.path}?${query.toString()}>; rel="next"` };
}
