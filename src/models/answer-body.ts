/** The body of an answer, in the form that a provider package can read. */
import type { Readable } from 'node:stream';
import { createParser } from 'eventsource-parser';
import { ModelFailed } from '../errors.js';
import type { System } from '../system/system.js';
import { boundedChunks, boundedText, jsonIn } from '../system/untrusted.js';
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

/** Largest answer in bytes. A draft takes 128 KiB; a stream adds some 200 bytes per token; 100 vectors are 6 MiB. */
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;

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
  if (came === form) return whole(text, reading);
  reading.received = { form: came, text };
  throw new OtherForm(came);
}

/** An answer that came in the form that is now asked for, or null. */
export function received(reading: Reading): Response | null {
  if (reading.received === null) return null;
  const { form, text } = reading.received;
  reading.received = null;
  return form === 'whole' ? whole(text, reading) : streamed([Buffer.from(text)], reading, () => undefined);
}

/** The content type need not be believed: an event stream begins with a name of its fields, or with a comment. */
function formOf(first: string): AnswerForm | null {
  if (first === '') return null;
  return 'deir:'.includes(first) ? 'stream' : 'whole';
}

function firstCharacter(text: string): string {
  return text
    .replace(/^\uFEFF/, '')
    .trimStart()
    .slice(0, 1);
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

function whole(text: string, { call, reader }: Reading): Response {
  return Response.json(reader.whole(objectIn(text, call)));
}

/** A JSON value, or `[DONE]` after it, which some servers send after a whole answer too. */
function objectIn(text: string, { purpose }: ServerCall): unknown {
  const json = withoutEnd(text.trim());
  if (json === '') throw unreadable(purpose, 'is empty');
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

type Chunks = AsyncIterable<Uint8Array> | Iterable<Uint8Array>;

/** @param end ends the chunks */
async function* encodedEvents(
  chunks: Chunks,
  { call, reader, after }: Reading,
  end: () => void,
): AsyncGenerator<Uint8Array> {
  let [hasBegun, isEnded] = [false, false];
  let cancelEnd = (): void => undefined;
  try {
    for await (const data of eventsIn(chunks)) {
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
  for await (const chunk of chunks) yield* feed(decoder.decode(chunk, { stream: true }));
  yield* feed(`${decoder.decode()}\n\n`);
}

function unreadable(purpose: string, what: string): ModelFailed {
  return modelFailed(`${purpose}: the body of its answer ${what}`, 'unreadable_answer');
}
