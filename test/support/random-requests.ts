/** Random requests from an OpenAPI document: some valid, most with an error. */
import { hostileTexts } from './hostile-texts.js';
import { choicesBy } from './seeded-random.js';

export interface RandomRequest {
  readonly method: string;
  /** With its query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array | null;
  /** Whether a successful answer is an endless stream. */
  readonly isStream: boolean;
}

/** The parts of a document that requests are generated from. */
export interface RequestDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

interface Operation {
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Schema }>> };
  readonly responses: Readonly<Record<string, { readonly content?: object }>>;
}

interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header' | 'cookie';
  readonly schema: Schema;
}

interface Schema {
  readonly $ref?: string;
  readonly type?: string | string[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly examples?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly maxLength?: number;
}

export interface RandomRequestOptions {
  readonly random: () => number;
  /** Valid ids, by the name of their parameter. */
  readonly ids: ReadonlyMap<string, readonly string[]>;
}

/** Numbers, texts and other values at the limits of valid values and beyond. */
const ODD: readonly unknown[] = [
  ...[null, true, false, 0, -1, 1.5, 1e308, -0, 2 ** 53, 1e21, '', ' ', '0', 'null', 'true', '-0', '1e3', '0x10'],
  ...['NaN', '\u0000', '\ud800', '../..', '%', '*', "' OR 1=1 --", '"', 'a'.repeat(300), 'é'.repeat(2_000)],
  ...[[], [[]], {}, [null], { a: { b: {} } }, { toString: 1 }, { length: -1 }, '2026-13-45', '9'.repeat(400)],
  ...hostileTexts(),
];
const ODD_BODIES = ['', '{', 'null', '[]', '"text"', '{}{}', '{"a":1,}', '{"__proto__":{"x":1}}', '\ufeff{}', 'NaN'];
const TYPES = ['text/plain', 'application/xml', 'application/json; charset=utf-16', 'multipart/form-data', 'json', ''];
const HEADERS: readonly (readonly [string, readonly string[]])[] = [
  ['Accept', ['text/event-stream', 'application/x-ndjson', 'text/vnd.mermaid', 'image/png', '*/*;q=0', ',,']],
  ['Content-Encoding', ['gzip', 'identity', 'br', 'x']],
  ['If-None-Match', ['*', '"x"', 'W/"1"', ',']],
  ['If-Match', ['*', '"1"', 'x']],
  ['Last-Event-ID', ['-1', '0', '9'.repeat(30), 'x']],
  ['Idempotency-Key', ['again', 'x'.repeat(256), ' ', 'é']],
  ['Authorization', ['Bearer', 'Bearer x', 'Basic eDp5', 'Bearer council_']],
  ['Cookie', ['council_session=x', '=;=', 'a=b; a=c']],
  ['Origin', ['null', 'https://elsewhere.example', 'x']],
  ['Range', ['bytes=0-1']],
  ['Expect', ['x']],
  ['X-Forwarded-For', ['1.1.1.1, x', '']],
  ['traceparent', ['00-0-0-0', 'x']],
];
/** Deepest nesting of generated values. */
const MAX_DEPTH = 8;

/** A function that makes a new random request to an operation of a document at each call. */
export function randomRequests(document: RequestDocument, { random, ids }: RandomRequestOptions): () => RandomRequest {
  const operations = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  );
  /** Runs give the other operations something to read. */
  const starts = operations.filter(({ operation }) => '202' in operation.responses);
  const { below, happens, oneOf } = choicesBy(random);
  /** The values without null and undefined. */
  const odd = (): unknown => ODD[below(ODD.length)];
  const asText = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));

  function valueOf(schema: Schema, depth = 0): unknown {
    if (schema.$ref !== undefined)
      return valueOf(document.components.schemas[schema.$ref.split('/').at(-1) ?? ''] ?? {}, depth);
    if (happens(0.04) || depth > MAX_DEPTH) return odd();
    const either = schema.anyOf ?? schema.oneOf;
    return either === undefined ? plainValueOf(schema, depth) : valueOf(oneOf(either), depth + 1);
  }

  function plainValueOf(schema: Schema, depth: number): unknown {
    if (schema.const !== undefined) return schema.const;
    const listed = schema.enum ?? (happens(0.5) ? schema.examples : undefined);
    if (listed !== undefined) return oneOf(listed);
    const types = [schema.type ?? 'string'].flat();
    return (VALUES[oneOf(types)] ?? textFor)(schema, depth);
  }

  /** By type of a schema. */
  const VALUES: Readonly<Record<string, (schema: Schema, depth: number) => unknown>> = {
    integer: numberFor,
    number: numberFor,
    boolean: () => happens(0.5),
    null: () => null,
    array: ({ items = {} }, depth) => Array.from({ length: below(4) }, () => valueOf(items, depth + 1)),
    object: objectFor,
    string: (schema) => (happens(0.5) ? textFor(schema) : idOf(oneOf([...ids.keys()]))),
  };

  function numberFor({ minimum = 0, maximum = 1e9 }: Schema): number {
    return happens(0.7) ? minimum + below(10) : oneOf([maximum, -1, 0.5, 1e300]);
  }

  function objectFor({ properties = {}, required = [] }: Schema, depth: number): object {
    const made: Record<string, unknown> = {};
    for (const [name, each] of Object.entries(properties)) {
      if (happens(required.includes(name) ? 0.97 : 0.3)) made[name] = valueOf(each, depth + 1);
    }
    return happens(0.1) ? { ...made, [asText(odd())]: odd() } : made;
  }

  const textFor = ({ maxLength = 40 }: Schema): string =>
    happens(0.9)
      ? oneOf(['writer', 'critic', 'approve', 'The sea', 'score < 8', 'x'])
      : 'x'.repeat(maxLength + below(2));

  const idOf = (name: string): string => {
    const known = ids.get(name) ?? [];
    return known.length > 0 && happens(0.85) ? oneOf(known) : asText(odd());
  };

  function queryOf(parameters: readonly Parameter[]): string {
    const parts: string[] = [];
    for (const { name, schema } of parameters.filter((each) => each.in === 'query')) {
      if (happens(0.6)) continue;
      const value = encoded(happens(0.3) ? asText(odd()) : asText(valueOf(schema)));
      parts.push(`${name}${happens(0.05) ? oneOf(['[]', '[a]', '%00', '.']) : ''}=${value}`);
      if (happens(0.05)) parts.push(`${name}=${encoded(asText(odd()))}`);
    }
    if (happens(0.05)) parts.push(oneOf(['%', '&&', '=', '%ff=%fe', `${encoded(asText(odd()))}=1`, '?', '#']));
    return parts.length === 0 ? '' : `?${parts.join('&')}`;
  }

  function bodyOf(operation: Operation): Pick<RandomRequest, 'headers' | 'body'> {
    const [content] = Object.entries(operation.requestBody?.content ?? {});
    if (content === undefined) return { headers: {}, body: happens(0.05) ? oneOf(ODD_BODIES) : null };
    const [type, { schema }] = content;
    const headers = { 'Content-Type': happens(0.05) ? oneOf(TYPES) : type };
    return type === 'multipart/form-data' ? formOf(headers) : { headers, body: jsonOf(schema) };
  }

  /** Text of a value, sometimes with a changed byte or a missing end. */
  function jsonOf(schema: Schema): string | Uint8Array {
    if (happens(0.05)) return oneOf(ODD_BODIES);
    const whole = Buffer.from(asText(happens(0.05) ? odd() : valueOf(schema)));
    if (!happens(0.05) || whole.length === 0) return whole;
    if (happens(0.5)) return whole.subarray(0, below(whole.length));
    whole[below(whole.length)] = below(256);
    return whole;
  }

  function formOf(headers: Record<string, string>): Pick<RandomRequest, 'headers' | 'body'> {
    const file = oneOf(['%PDF-1.4\n', '', 'x', '%PDF-1.7\n1 0 obj\n<<>>\nendobj\ntrailer<</Root 1 0 R>>\n%%EOF']);
    const part = `Content-Disposition: form-data; name="${oneOf(['file', 'file', 'x', ''])}"; filename="${oneOf(['a.pdf', '../x', '\u202e.pdf', '"'])}"`;
    const body = `--b\r\n${part}\r\nContent-Type: application/pdf\r\n\r\n${file}\r\n--b${oneOf(['--\r\n', '', '\r\n'])}`;
    return {
      headers: { ...headers, 'Content-Type': `multipart/form-data; boundary=${oneOf(['b', 'b', 'c', ''])}` },
      body,
    };
  }

  function headersOf(): Record<string, string> {
    const made: Record<string, string> = {};
    while (happens(0.15)) {
      const [name, values] = oneOf(HEADERS);
      made[name] = oneOf(values);
    }
    return made;
  }

  return () => {
    const { path, method, operation } = oneOf(starts.length > 0 && happens(0.15) ? starts : operations);
    const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encoded(idOf(name)) || 'x');
    const { headers, body } = bodyOf(operation);
    const verb = happens(0.02) ? oneOf(['PATCH', 'OPTIONS', 'HEAD', 'PUT', 'DELETE']) : method;
    return {
      method: verb,
      path: filled + (happens(0.03) ? '/' : '') + queryOf(operation.parameters ?? []),
      headers: { ...headersOf(), ...headers },
      body: verb === 'GET' || verb === 'HEAD' ? null : body,
      isStream: Object.values(operation.responses).some(({ content = {} }) => 'text/event-stream' in content),
    };
  };
}

/** Encoded as a part of a URL. An unpaired surrogate has no encoding. */
function encoded(text: string): string {
  return encodeURIComponent(text.toWellFormed());
}
