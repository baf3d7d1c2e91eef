/** The body of an answer, in the form that a provider package can read. */
import type { Readable } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createParser } from 'eventsource-parser';
import { ModelFailed } from '../errors.js';
import type { System } from '../system/system.js';
import { BodyTooLarge, boundedChunks, boundedText, holdsManyValues, jsonIn } from '../system/untrusted.js';
import { modelFailed } from './failed-exchange.js';
import type { AnswerReader, ServerCall } from './server-call.js';

export type AnswerForm = 'whole' | 'stream';

/** The server answered in this form, which was not asked for. The package reads the answer again, in this form. */
export class OtherForm extends Error {
  readonly form: AnswerForm;
  constructor(form: AnswerForm) {
    super(`The answer is ${form === 'whole' ? 'one JSON value' : 'a stream'}`);
    this.form = form;
  }
}

/** The reading of one call's answer. */
export interface Reading {
  readonly call: ServerCall;
  readonly reader: AnswerReader;
  readonly after: System['after'];
  /** An answer that came in the other form than was asked for, or null. */
  received: { readonly form: AnswerForm; readonly text: string } | null;
}

/**
 * How long the next event of a complete stream may take, in milliseconds. More delays the answer of a server that leaves
 * the connection open; less cuts off one that sends a finish reason with every piece.
 */
const NEXT_EVENT_MS = 5000;

/** Largest answer in bytes: a stream adds some 200 bytes per token, and spaces may keep the connection open. */
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;

/** Longest JSON text of an answer, or of an event of a stream, in UTF-16 units. A draft takes 128 KiB; thoughts take more. */
const MAX_JSON_CHARS = 4 * 1024 * 1024;

/** The answer for the package: one JSON value, or events that each hold one, in the form that was asked for. */
export async function readable(answer: Readable, form: AnswerForm, reading: Reading): Promise<Response> {
  const chunks = boundedChunks({ body: answer }, MAX_ANSWER_BYTES);
  const begun: Uint8Array[] = [];
  let first = '';
  while (form === 'stream' && first === '') {
    const next = await chunks.next();
    if (next.done === true) break;
    begun.push(next.value);
    first = firstCharacter(Buffer.from(next.value).toString());
  }
  const body = chained(begun, chunks);
  if (form === 'stream' && formOf(first) !== 'whole') return streamed(body, reading, () => void answer.destroy());
  const text = await boundedText({ body }, MAX_ANSWER_BYTES);
  const came = formOf(firstCharacter(text)) ?? form;
  if (came === form) return await whole(text, reading);
  reading.received = { form: came, text };
  throw new OtherForm(came);
}

/** An answer that came in the form that is now asked for, or null. */
export async function received(reading: Reading): Promise<Response | null> {
  if (reading.received === null) return null;
  const { form, text } = reading.received;
  reading.received = null;
  return form === 'whole' ? await whole(text, reading) : streamed([text], reading, () => undefined);
}

/** The content type need not be believed: an event stream begins with a name of its fields, or with a comment. */
function formOf(first: string): AnswerForm | null {
  if (first === '') return null;
  return 'deir:'.includes(first) ? 'stream' : 'whole';
}

/** The first character that is neither white space nor a byte order mark. Copies nothing: a text may have 16 MB. */
function firstCharacter(text: string): string {
  return /\S/.exec(text)?.[0] ?? '';
}

async function* chained(
  begun: Iterable<Uint8Array>,
  rest: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void> {
  yield* begun;
  yield* rest;
}

function streamed(chunks: Chunks, reading: Reading, end: () => void): Response {
  const events = ReadableStream.from(encodedEvents(chunks, reading, end));
  return new Response(events, { headers: { 'content-type': 'text/event-stream' } });
}

/** Other work may be done between its steps: each takes milliseconds for a large answer, and the package reads it again. */
async function whole(text: string, { call, reader }: Reading): Promise<Response> {
  const isLarge = text.length > TURN_CHARS;
  if (isLarge) await nextTurn();
  const value = objectIn(text, call, reader.maxChars);
  if (isLarge) await nextTurn();
  const read = JSON.stringify(reader.whole(value));
  if (isLarge) await nextTurn();
  return new Response(read, { headers: { 'content-type': 'application/json' } });
}

/** Most events of a stream: a model writes a token or more with each. The packages take some 50 µs for one. */
const MAX_EVENTS = 250_000;

/** Events of a stream, and UTF-16 units of them, that are read before other work gets its turn. */
const [TURN_EVENTS, TURN_CHARS] = [32, 64 * 1024];

/** A JSON value, or `[DONE]` after it, which some servers send after a whole answer too. */
function objectIn(text: string, { purpose }: ServerCall, maxChars = MAX_JSON_CHARS): unknown {
  const json = withoutEnd(text.trim());
  if (json === '') throw unreadable(purpose, 'is empty');
  if (json.length > maxChars || holdsManyValues(json)) throw new BodyTooLarge('A long text, or too many values, came');
  const value = jsonIn(json);
  if (typeof value === 'object' && value !== null) return value;
  throw unreadable(purpose, 'is no JSON object, or cut off');
}

function withoutEnd(text: string): string {
  if (!text.endsWith('[DONE]')) return text;
  return text
    .slice(0, -'[DONE]'.length)
    .trimEnd()
    .replace(/data:$/, '');
}

type Chunks = AsyncIterable<Uint8Array> | Iterable<string>;

/** @param end ends the chunks */
async function* encodedEvents(
  chunks: Chunks,
  { call, reader, after }: Reading,
  end: () => void,
): AsyncGenerator<Uint8Array> {
  let [hasBegun, isEnded] = [false, false];
  let cancelEnd = (): void => undefined;
  try {
    for await (const data of inTurns(eventsIn(chunks))) {
      if (data.trim() === '') continue;
      if (data.trim() === '[DONE]') {
        isEnded = true;
        break;
      }
      const came = objectIn(data, call);
      const event = reader.event(came);
      isEnded ||= reader.isEnd(came);
      cancelEnd();
      if (isEnded) cancelEnd = after(NEXT_EVENT_MS, end);
      if (event === null) continue;
      hasBegun = true;
      yield Buffer.from(`data: ${JSON.stringify(event)}\n\n`);
    }
  } catch (error) {
    // A complete answer stays complete, whatever follows it.
    if (!isEnded) throw hasBegun ? afterWork(error) : error;
  } finally {
    cancelEnd();
  }
  if (!isEnded) throw unreadable(call.purpose, 'broke off');
  const last = reader.event(null);
  if (last !== null) yield Buffer.from(`data: ${JSON.stringify(last)}\n\n`);
}

/** The failure of an answer that broke off. The model has worked, so the usage is unknown and not zero. */
function afterWork(error: unknown): unknown {
  if (!(error instanceof ModelFailed)) return error;
  return new ModelFailed(error.message, { usage: { inputTokens: null, outputTokens: null }, ...error.data });
}

/** The events, at most 250,000, with turns for other work between them. */
async function* inTurns(all: AsyncIterable<string>): AsyncGenerator<string> {
  let [count, events, chars] = [0, 0, 0];
  for await (const data of all) {
    [count, events, chars] = [count + 1, events + 1, chars + data.length];
    if (count > MAX_EVENTS) throw new BodyTooLarge('Too many events came');
    if (events > TURN_EVENTS || chars > TURN_CHARS) {
      await nextTurn();
      [events, chars] = [0, 0];
    }
    yield data;
  }
}

/** The data of each event; the last one counts without its empty line, which several servers leave out. */
async function* eventsIn(chunks: Chunks): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let came: string[] = [];
  const parser = createParser({ onEvent: ({ data }) => came.push(data) });
  const feed = (text: string): readonly string[] => {
    came = [];
    parser.feed(text);
    return came;
  };
  for await (const chunk of chunks) {
    const text = typeof chunk === 'string' ? chunk : decoder.decode(chunk, { stream: true });
    // The parser looks for the next line break of each kind up to the end of what it is fed.
    for (let at = 0; at < text.length; at += FED_CHARS) {
      if (at % TURN_CHARS === TURN_CHARS - FED_CHARS) await nextTurn();
      yield* feed(text.slice(at, at + FED_CHARS));
    }
  }
  yield* feed(`${decoder.decode()}\n\n`);
}

/** UTF-16 units that the parser of events is fed at once. */
const FED_CHARS = 4096;

function unreadable(purpose: string, what: string): ModelFailed {
  return modelFailed(`${purpose}: the body of its answer ${what}`, 'unreadable_answer');
}
