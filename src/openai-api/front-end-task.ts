/** Answers the tasks of chat front ends by one call of the default model. */
import type { RouterContext } from '@koa/router';
import { isFault, problemOf } from '../api/problems.js';
import type { Answer } from '../http/answer.js';
import type { EventSink } from '../http/event-stream.js';
import { EVENT_STREAM_HEADERS, eventStream } from '../http/event-stream.js';
import type { HttpContext } from '../http/route.js';
import type { Caller } from '../keys/caller.js';
import type { ChatHead, ChatText } from './chat-object.js';
import { completionOf, encoded, openingChunk, textChunks } from './chat-object.js';
import type { BegunCall, ModelDeps } from './default-model.js';
import { askDefaultModel } from './default-model.js';
import { errorOf } from './errors.js';
import { secondsOf } from './response-object.js';
import { comment } from './stream.js';
import { callUsage } from './usage.js';

export interface FrontEndTask {
  readonly model: string;
  readonly prompt: string;
  readonly isStream: boolean;
  readonly hasUsage: boolean;
}

/** @throws {RequestRefused} 429, {ModelFailed} */
export async function taskAnswer(
  deps: ModelDeps,
  request: { readonly ctx: RouterContext; readonly caller: Caller },
  { model, prompt, isStream, hasUsage }: FrontEndTask,
): Promise<Answer> {
  const { http } = deps;
  const call = askDefaultModel(deps, prompt, request);
  const created = secondsOf(http.system.now());
  const head = { id: `chatcmpl-${call.id.replaceAll('-', '')}`, created, model };
  if (!isStream) return { status: 200, body: completionOf(await textOf(head, call)) };
  const deliver = async (sink: EventSink): Promise<void> => {
    sink.begin();
    for (const bytes of await chunksOf(http, () => textOf(head, call), hasUsage)) void sink.send(bytes);
  };
  const opening = comment('the default model');
  const body = await eventStream({ http, response: request.ctx.res, deliver, opening });
  return { status: 200, headers: EVENT_STREAM_HEADERS, body };
}

async function textOf(head: ChatHead, { answer }: BegunCall): Promise<ChatText> {
  const { text, usage } = await answer;
  return { head, content: text, ...callUsage(usage) };
}

/** The chunks of a text, or the error of a call that failed, as the answer has begun. */
async function chunksOf(
  http: HttpContext,
  read: () => Promise<ChatText>,
  hasUsage: boolean,
): Promise<readonly Buffer[]> {
  try {
    const text = await read();
    return [openingChunk(text.head), ...textChunks(text, hasUsage)];
  } catch (error) {
    const requestId = http.system.uuid();
    if (isFault(error)) http.onFault(requestId, error);
    return [encoded(errorOf(problemOf(error, requestId)))];
  }
}
