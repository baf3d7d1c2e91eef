/** Anthropic's messages. */
import { fieldOf, isList, recordOf, textOf } from '../../system/untrusted.js';
import type { ModelUsage } from '../port.js';
import { MAX_CALLS } from '../port.js';
import { errorInAnswer, partsIn, unusable } from '../unusable-answer.js';
import type { ReportedUsage } from '../usage.js';
import { count, sumOf, withReport } from '../usage.js';
import type { ServerCall } from '../server-call.js';
import type { Wire, WireOptions, WireReader } from './wire.js';

export async function anthropicWire({ baseUrl, apiKey }: WireOptions): Promise<Wire> {
  const { createAnthropic } = await import('@ai-sdk/anthropic');
  return {
    // The package insists on a key; `headers` replaces what it sends.
    headers: { 'x-api-key': apiKey },
    model: (name, { fetch, maxOutputTokens: limit }) =>
      createAnthropic({ baseURL: baseUrl, apiKey: 'none', fetch: withLimit(fetch, limit) })(name),
    reader: readerOf,
    cacheMark: { anthropic: { cacheControl: { type: 'ephemeral' } } },
  };
}

/**
 * Sends the node's limit on output tokens unchanged, because a run with a budget has reserved that many. The package would
 * lower it to the model's maximum.
 */
function withLimit(fetch: typeof globalThis.fetch, limit: number | undefined): typeof globalThis.fetch {
  if (limit === undefined) return fetch;
  return (url, init) => {
    if (typeof init?.body !== 'string') return fetch(url, init);
    // The first match is the limit: it precedes the texts, and in texts quotes are escaped.
    return fetch(url, { ...init, body: init.body.replace(LIMIT, String(limit)) });
  };
}

const LIMIT = /(?<="max_tokens":)\d+/;

/** A call, and what has come of its answer. */
interface Reading extends ServerCall {
  reported: ReportedUsage;
  /** Whether the last event came. */
  isStopped: boolean;
  /** Whether the block that comes is left out. */
  isLeftOut: boolean;
  /** Tool calls that have come. */
  calls: number;
}

function readerOf(call: ServerCall): WireReader {
  const reading: Reading = { ...call, reported: {}, isStopped: false, isLeftOut: false, calls: 0 };
  const refuseError = (body: unknown): void => {
    if (fieldOf(body, 'type') === 'error') throw errorInAnswer(body, call);
  };
  return {
    whole(body) {
      keepUsage(body, reading);
      refuseError(body);
      const content = fieldOf(body, 'content');
      if (!isList(content)) throw unusable(call, 'it has another form than an answer has', 'unreadable_answer');
      const blocks = partsIn(content, call).flatMap((each, index) => blockIn(each, index, reading));
      return { type: 'message', content: blocks, ...stopIn(body), usage: NO_USAGE };
    },
    event(event) {
      refuseError(event);
      const read = eventIn(event, reading);
      if (fieldOf(read, 'type') === 'message_stop') reading.isStopped = true;
      return read;
    },
    isEnd: (event) => fieldOf(event, 'type') === 'message_stop' || isStopped(event),
    usage: () => usageOf(reading.reported),
  };
}

function keepUsage(from: unknown, reading: Reading): void {
  reading.reported = withReport(reading.reported, fieldOf(from, 'usage'), REPORTED);
}

/** The fields of `usage` that are read. */
const REPORTED = [
  ...['input_tokens', 'cache_read_input_tokens', 'cache_creation_input_tokens', 'cache_creation', 'output_tokens'],
  ...['output_tokens_details'],
];

/** An event in the form that the package reads; null leaves it out, and at the end adds the last event if none came. */
function eventIn(event: unknown, reading: Reading): unknown {
  const type = event === null ? 'message_stop' : fieldOf(event, 'type');
  const at = fieldOf(event, 'index');
  const index = typeof at === 'number' ? at : 0;
  switch (type) {
    case 'message_start': {
      // It counts the first output token at most: the whole output is in `message_delta`.
      const { output_tokens: _, ...usage } = recordOf(fieldOf(fieldOf(event, 'message'), 'usage'));
      keepUsage({ usage }, reading);
      return { type, message: { usage: NO_USAGE } };
    }
    case 'content_block_start': {
      const [block] = blockIn(fieldOf(event, 'content_block'), index, reading);
      reading.isLeftOut = block === undefined;
      return block === undefined ? null : { type, index, content_block: block };
    }
    case 'content_block_delta':
      return reading.isLeftOut || !isDelta(fieldOf(event, 'delta')) ? null : { ...recordOf(event), index };
    case 'content_block_stop':
      return reading.isLeftOut ? null : { type, index };
    case 'message_delta':
      keepUsage(event, reading);
      return { type, delta: stopIn(fieldOf(event, 'delta')), usage: NO_USAGE };
    case 'message_stop':
      return reading.isStopped ? null : { type };
    default:
      return null;
  }
}

/** A block in the form that the package reads, none for a kind that the service does not ask for. */
function blockIn(block: unknown, index: number, reading: Reading): readonly object[] {
  const text = (name: string): string => textOf(fieldOf(block, name)) ?? '';
  const type = fieldOf(block, 'type');
  switch (type) {
    case 'text':
      return [{ type, text: text('text') }];
    case 'thinking':
      return [{ type, thinking: text('thinking'), signature: text('signature') }];
    case 'redacted_thinking':
      return [{ type, data: text('data') }];
    case 'tool_use': {
      if (text('name') === '' || reading.calls >= MAX_CALLS) return [];
      reading.calls += 1;
      const id = text('id') || `call_${reading.rounds}_${index}`;
      return [{ type, id, name: text('name'), input: recordOf(fieldOf(block, 'input')) }];
    }
    default:
      return [];
  }
}

function isDelta(delta: unknown): boolean {
  const field = DELTAS.get(fieldOf(delta, 'type'));
  return field !== undefined && typeof fieldOf(delta, field) === 'string';
}

/** What a piece of a block carries, by its type. */
const DELTAS: ReadonlyMap<unknown, string> = new Map<unknown, string>([
  ['text_delta', 'text'],
  ['thinking_delta', 'thinking'],
  ['signature_delta', 'signature'],
  ['input_json_delta', 'partial_json'],
]);

function stopIn(from: unknown): object {
  return {
    stop_reason: textOf(fieldOf(from, 'stop_reason')) ?? null,
    stop_sequence: textOf(fieldOf(from, 'stop_sequence')) ?? null,
  };
}

/** The package insists on counts. */
const NO_USAGE = { input_tokens: 0, output_tokens: 0 };

function isStopped(event: unknown): boolean {
  return (
    fieldOf(event, 'type') === 'message_delta' && typeof fieldOf(fieldOf(event, 'delta'), 'stop_reason') === 'string'
  );
}

/** Anthropic counts tokens read from and written to its cache beside `input_tokens`. */
function usageOf(raw: ReportedUsage): ModelUsage {
  const fresh = count(raw, 'input_tokens');
  const cachedInputTokens = count(raw, 'cache_read_input_tokens');
  const cacheWriteTokens = count(raw, 'cache_creation_input_tokens');
  const ofHour = count(fieldOf(raw, 'cache_creation'), 'ephemeral_1h_input_tokens');
  return {
    inputTokens: fresh === null ? null : sumOf(fresh, cachedInputTokens ?? 0, cacheWriteTokens ?? 0),
    cachedInputTokens,
    cacheWriteTokens,
    ...(ofHour !== null && { cacheWriteHourTokens: ofHour }),
    outputTokens: count(raw, 'output_tokens'),
    reasoningTokens: count(fieldOf(raw, 'output_tokens_details'), 'thinking_tokens'),
  };
}
