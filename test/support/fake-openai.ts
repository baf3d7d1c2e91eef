/** A server for OpenAI's chat completions. A script sets its answers and faults. */
import type { FakeServer, Reply, Script } from './fake-server.js';
import { fakeServer, sends, streams } from './fake-server.js';

export type FakeOpenAi = FakeServer<OpenAiRequest>;

/** The fields of a request body that tests read. */
export interface OpenAiRequest {
  readonly model: string;
  readonly messages: readonly OpenAiMessage[];
  readonly temperature?: number;
  readonly max_tokens?: number;
  readonly max_completion_tokens?: number;
  readonly response_format?: {
    readonly type: string;
    readonly json_schema?: { readonly name: string; readonly schema: object };
  };
  readonly tools?: readonly { readonly type: string; readonly function: { readonly name: string } }[];
  readonly stream?: boolean;
  readonly stream_options?: object;
}

export interface OpenAiMessage {
  readonly role: string;
  readonly content: string | null;
  readonly tool_calls?: readonly {
    readonly id: string;
    readonly function: { readonly name: string; readonly arguments: string };
    readonly extra_content?: object;
  }[];
  readonly tool_call_id?: string;
}

export function fakeOpenAi(script: Script<OpenAiRequest> | readonly Reply[] = councilOf([8])): Promise<FakeOpenAi> {
  return fakeServer(script);
}

/** Critics give these scores in order, the last one again and again; agents answer `Draft 1`, `Draft 2` and so on. */
export function councilOf(scores: readonly number[]): Script<OpenAiRequest> {
  let scored = 0;
  let drafted = 0;
  return ({ body }) => {
    if (!isCritique(body)) return says(`Draft ${(drafted += 1)}`);
    const score = scores[Math.min(scored, scores.length - 1)];
    scored += 1;
    return says(JSON.stringify({ score, feedback: `Feedback ${scored}` }));
  };
}

/** Whether a critic is asked. */
export function isCritique({ messages }: OpenAiRequest): boolean {
  return messages[0]?.content?.includes('"score" is a number') ?? false;
}

export const USAGE = { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 };

/** One whole answer. */
export function says(content: unknown, finishReason: string | null = 'stop'): Reply {
  return answers({ role: 'assistant', content }, finishReason);
}

/** One complete answer that calls tools: names, and arguments as JSON text or as values. */
export function calls(...wanted: readonly (readonly [name: string, given: unknown])[]): Reply {
  const toolCalls = wanted.map(([name, given], index) => ({
    id: `id_${index}`,
    type: 'function',
    function: { name, arguments: typeof given === 'string' ? given : JSON.stringify(given) },
  }));
  return answers({ role: 'assistant', content: null, tool_calls: toolCalls }, 'tool_calls');
}

/** A message of any form. */
export function answers(message: unknown, finishReason: unknown = 'stop'): Reply {
  const choice = { index: 0, message, ...(finishReason !== null && { finish_reason: finishReason }) };
  return sends({ id: 'chatcmpl-1', object: 'chat.completion', choices: [choice], usage: USAGE });
}

/** One answer in pieces, then `[DONE]`. */
export function saysInPieces(pieces: readonly string[]): Reply {
  return streams([
    { choices: [{ index: 0, delta: { role: 'assistant', content: '' } }] },
    ...pieces.map((content) => ({ choices: [{ index: 0, delta: { content }, finish_reason: null }] })),
    { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
    { choices: [], usage: USAGE },
    '[DONE]',
  ]);
}

/** An error in OpenAI's form. */
export function refuses(
  status: number,
  { message = 'No.', code = null, headers = {} }: { message?: string; code?: string | null; headers?: object } = {},
): Reply {
  return (response) => {
    response.writeHead(status, { 'Content-Type': 'application/json', ...headers });
    response.end(JSON.stringify({ error: { message, type: 'error', param: null, code } }));
  };
}
