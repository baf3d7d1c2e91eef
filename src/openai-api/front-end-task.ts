/** Answers the tasks of chat front ends, which no council should answer, by one call of the default model. */
import type { RouterContext } from '@koa/router';
import { clientOf } from '../api/access/limits.js';
import { isFault, problemOf } from '../api/problems.js';
import type { Answer } from '../http/answer.js';
import { closedSignal } from '../http/answer.js';
import type { EventSink } from '../http/event-stream.js';
import { EVENT_STREAM_HEADERS, eventStream } from '../http/event-stream.js';
import { enforceLimits } from '../http/answering.js';
import type { HttpContext } from '../http/route.js';
import type { Grant } from '../keys/caller.js';
import type { BoundedModel } from '../models/bounded.js';
import type { ChatText } from './chat-object.js';
import { completionOf, encoded, openingChunk, textChunks } from './chat-object.js';
import { errorOf } from './errors.js';
import { secondsOf } from './response-object.js';
import { comment } from './stream.js';
import { chatUsage } from './usage.js';

/** How chat front ends begin prompts for titles, tags and follow-ups (Open WebUI 0.6). */
const TASK_MARK = '### Task:';

/** Whether a message is a task of a chat front end. */
export function isFrontEndTask(text: string): boolean {
  return text.startsWith(TASK_MARK);
}

export interface TaskDeps {
  /** The default model. */
  readonly model: Pick<BoundedModel, 'ask'>;
  /** How long a call to it may take, in milliseconds. */
  readonly modelTimeoutMs: number;
}

export interface FrontEndTask {
  /** As the client names it. */
  readonly model: string;
  readonly prompt: string;
  readonly isStream: boolean;
  readonly hasUsage: boolean;
}

/** The call counts as a run for the limits while it lasts, and ends with its client and with its key. @throws {RequestRefused} 429, {ModelFailed} */
export async function taskAnswer(
  { http, ...deps }: TaskDeps & { readonly http: HttpContext },
  { ctx, caller }: { readonly ctx: RouterContext; readonly caller: Grant },
  { model, prompt, isStream, hasUsage }: FrontEndTask,
): Promise<Answer> {
  const id = http.system.uuid();
  enforceLimits(ctx, http.limits.run(clientOf(ctx.req, caller, http), id));
  const asking = ask(deps, prompt, { id, signal: closedSignal(ctx.res, caller, http) }).finally(() =>
    http.limits.ended(id),
  );
  const head = { id: `chatcmpl-${id.replaceAll('-', '')}`, created: secondsOf(http.system.now()), model };
  const text = asking.then((answer) => ({ head, ...answer }));
  if (!isStream) return { status: 200, body: completionOf(await text) };
  const deliver = async (sink: EventSink): Promise<void> => {
    sink.begin();
    for (const bytes of await chunksOf(text, http, hasUsage)) void sink.send(bytes);
  };
  const opening = comment('the default model');
  const body = await eventStream({ http, response: ctx.res, caller, deliver, opening });
  return { status: 200, headers: EVENT_STREAM_HEADERS, body };
}

async function ask(
  { model, modelTimeoutMs }: TaskDeps,
  prompt: string,
  { id, signal }: { readonly id: string; readonly signal: AbortSignal },
): Promise<Omit<ChatText, 'head'>> {
  const request = { system: SYSTEM, prompt, promptInput: { ...PROMPT_INPUT, topic: prompt }, answer: 'draft' } as const;
  const { text, usage } = await model.ask(request, { runId: id, timeoutMs: modelTimeoutMs, outage: null, signal });
  return { content: text, ...chatUsage(usage) };
}

const SYSTEM = 'Do the task of the last message, and answer in the form that it asks for.';

const PROMPT_INPUT = { label: 'Assistant', role: 'agent', systemPrompt: SYSTEM, draft: null, feedback: [] } as const;

/** The chunks of a text, or the error of a call that failed, as the answer has begun. */
async function chunksOf(asking: Promise<ChatText>, http: HttpContext, hasUsage: boolean): Promise<readonly Buffer[]> {
  try {
    const text = await asking;
    return [openingChunk(text.head), ...textChunks(text, hasUsage)];
  } catch (error) {
    const requestId = http.system.uuid();
    if (isFault(error)) http.onFault(requestId, error);
    return [encoded(errorOf(problemOf(error, requestId)))];
  }
}
