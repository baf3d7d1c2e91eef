/** A server that speaks Anthropic's messages, well or badly, by a script. */
import type { FakeServer, Reply, Script } from './fake-server.js';
import { fakeServer, sends } from './fake-server.js';

/** What of a request body tests look at. */
export interface AnthropicRequest {
  readonly model: string;
  readonly max_tokens: number;
  readonly system?: readonly { readonly text: string }[];
  readonly messages: readonly {
    readonly role: string;
    readonly content: readonly Readonly<Record<string, unknown>>[];
  }[];
  readonly temperature?: number;
  readonly tools?: readonly { readonly name: string; readonly input_schema: object }[];
  readonly stream?: boolean;
}

export type FakeAnthropic = FakeServer<AnthropicRequest>;

export function fakeAnthropic(script: Script<AnthropicRequest> | readonly Reply[]): Promise<FakeAnthropic> {
  return fakeServer(script);
}

export const USAGE = { input_tokens: 11, output_tokens: 7 };

/** One whole answer: its text, or its blocks. */
export function says(
  content: string | readonly object[],
  stopReason: string | null = 'end_turn',
  usage: object = USAGE,
): Reply {
  const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : content;
  return sends({ ...MESSAGE, content: blocks, stop_reason: stopReason, usage });
}

/** One answer in pieces of text. */
export function saysInPieces(pieces: readonly string[]): Reply {
  return streamsEvents([
    {
      type: 'message_start',
      message: { ...MESSAGE, content: [], stop_reason: null, usage: { ...USAGE, output_tokens: 1 } },
    },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    { type: 'ping' },
    ...pieces.map((text) => ({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } })),
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 7 } },
    { type: 'message_stop' },
  ]);
}

/** Events with their names, as the vendor sends them. */
export function streamsEvents(
  events: readonly ({ readonly type: string } & Readonly<Record<string, unknown>>)[],
): Reply {
  return (response) => {
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    response.end(events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join(''));
  };
}

export function refuses(status: number, type: string, message = 'No.', headers: object = {}): Reply {
  return (response) => {
    response.writeHead(status, { 'Content-Type': 'application/json', ...headers });
    response.end(JSON.stringify({ type: 'error', error: { type, message }, request_id: 'req_1' }));
  };
}

const MESSAGE = { id: 'msg_1', type: 'message', role: 'assistant', model: 'claude-x', stop_sequence: null };
