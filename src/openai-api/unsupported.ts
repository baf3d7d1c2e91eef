/** Refuses parameters whose effect a client would miss. */
import type { ChatRequest, ResponseRequest } from '../generated/schemas.js';
import { refusal } from './errors.js';

/** Whether a request sets each parameter to a value that a council cannot honour, by the name of the parameter. */
type Checks<Body> = Readonly<Record<string, (body: Body) => boolean>>;

const CHAT: Checks<ChatRequest> = {
  functions: ({ functions }) => hasItems(functions),
  tool_choice: ({ tool_choice: choice }) => forcesTool(choice),
  n: ({ n = 1 }) => n > 1,
  logprobs: ({ logprobs = false }) => logprobs,
  top_logprobs: ({ top_logprobs: most = 0 }) => most > 0,
  modalities: ({ modalities = [] }) => modalities.some((each) => each !== 'text'),
  audio: ({ audio }) => audio !== undefined,
  web_search_options: ({ web_search_options: options }) => options !== undefined,
};

const RESPONSE: Checks<ResponseRequest> = {
  tool_choice: ({ tool_choice: choice }) => forcesTool(choice),
  top_logprobs: ({ top_logprobs: most = 0 }) => most > 0,
  conversation: ({ conversation }) => conversation !== undefined,
  prompt: ({ prompt }) => prompt !== undefined,
};

/** @throws {RequestRefused} 400 */
export function assertChatSupported(body: ChatRequest): void {
  assertSupported(body, CHAT);
}

/** @throws {RequestRefused} 400 */
export function assertResponseSupported(body: ResponseRequest): void {
  assertSupported(body, RESPONSE);
}

function assertSupported<Body>(body: Body, checks: Checks<Body>): void {
  const [found] = Object.entries(checks).find(([, isUnsupported]) => isUnsupported(body)) ?? [];
  if (found === undefined) return;
  throw refusal(`A council does not support this value of "${found}"`, { code: 'unsupported_parameter', at: [found] });
}

function hasItems(list: readonly unknown[] = []): boolean {
  return list.length > 0;
}

function forcesTool(choice: string | object = 'auto'): boolean {
  return choice !== 'auto' && choice !== 'none';
}
