/** Reads untrusted input: bodies up to a limit, and values of any type. */

/** A body is larger than its limit. */
export class BodyTooLarge extends Error {}

interface HasBody {
  readonly body: AsyncIterable<Uint8Array> | null;
}

/** The chunks of a body, at most `maxBytes` in all; leaving the loop cancels the body. @throws {BodyTooLarge} */
export async function* boundedChunks({ body }: HasBody, maxBytes: number): AsyncGenerator<Uint8Array, void> {
  let bytes = 0;
  if (body === null) return;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw new BodyTooLarge(`More than ${maxBytes} bytes came`);
    yield chunk;
  }
}

/** A body as text. @throws {BodyTooLarge} */
export async function boundedText(response: HasBody, maxBytes: number): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of boundedChunks(response, maxBytes)) text += decoder.decode(chunk, { stream: true });
  return text + decoder.decode();
}

/** Whether a value is a list. `Array.isArray` would give its elements the type any. */
export function isList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value);
}

/** The elements of a value, none if it is not a list. */
export function listOf(value: unknown): readonly unknown[] {
  return isList(value) ? value : [];
}

/** A field of a value, or undefined if it has none. */
export function fieldOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
}

/** Whether a value is a JSON object. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A value if it is a JSON object, or an empty one. */
export function recordOf(value: unknown): Readonly<Record<string, unknown>> {
  return isRecord(value) ? value : {};
}

/** A value if it is a text, or undefined. */
export function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

/** The value of a JSON text, or null if it holds none. */
export function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/**
 * Whether a JSON text holds more than 400,000 values (100 vectors of 3,072 numbers are 307,200) or 50,000 fields. Parsing takes
 * time by their number more than by the length of the text, so texts of servers and models are checked before they are parsed.
 */
export function holdsManyValues(text: string): boolean {
  let [values, fields] = [0, 0];
  for (let at = 0; at < text.length; at += 1) {
    const sign = text.charCodeAt(at);
    if (sign === QUOTE) at = endOfString(text, at);
    else if (sign === COMMA || sign === BRACE || sign === BRACKET) values += 1;
    else if (sign === COLON) fields += 1;
  }
  return values > MAX_VALUES || fields > MAX_FIELDS;
}

/** Where the string that begins here ends, or the end of the text. */
function endOfString(text: string, begin: number): number {
  for (let at = begin + 1; at < text.length; at += 1) {
    const sign = text.charCodeAt(at);
    if (sign === QUOTE) return at;
    if (sign === BACKSLASH) at += 1;
  }
  return text.length;
}

const MAX_VALUES = 400_000;
const MAX_FIELDS = 50_000;
const [QUOTE, COMMA, COLON, BRACKET, BACKSLASH, BRACE] = [0x22, 0x2c, 0x3a, 0x5b, 0x5c, 0x7b];

/** The message of a thrown value. */
export function reasonOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}
