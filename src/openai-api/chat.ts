/** POST /v1/chat/completions. */
import { problemOf } from '../api/problems.js';
import type { RequestRefused } from '../api/problems.js';
import type { ChatRequest } from '../generated/schemas.js';
import type { Answer } from '../http/answer.js';
import { bodyOf, startBodyBytes } from '../http/body.js';
import type { Route } from '../http/route.js';
import type { RunState } from '../run/state.js';
import { failureOf } from '../run/state.js';
import { chatTextOf, completionOf, encoded, headOf, openingChunk, progressChunk, textChunks } from './chat-object.js';
import { blueprintOf, modelStarts } from './council-model.js';
import type { TaskDeps } from './front-end-task.js';
import { isFrontEndTask, taskAnswer } from './front-end-task.js';
import { errorOf, refusal } from './errors.js';
import type { FollowDeps } from './followed-run.js';
import { endOf } from './followed-run.js';
import { progressLine } from './progress.js';
import type { Encode } from './stream.js';
import { RUN_ID_HEADER, streamAnswer } from './stream.js';
import { schemaOf } from './output-format.js';
import type { SentMessage } from './topic.js';
import { conversationOf } from './topic.js';
import { fieldOf, recordOf, textOf } from '../system/untrusted.js';
import { assertChatSupported } from './unsupported.js';

const COMPLETION = {
  status: 200,
  description: 'The completion',
  schema: 'chat-completion.json',
  headers: [RUN_ID_HEADER],
  alsoAs: { 'text/event-stream': { description: 'With `stream`: chunks, then `[DONE]`', each: 'chat-chunk.json' } },
} as const;

export function chatRoute(following: FollowDeps, deps: TaskDeps): Route {
  const { http } = following;
  const maxBytes = startBodyBytes(http.maxMaterialBytes);
  const reader = bodyOf(http, 'chat-request.json', { isRequired: true, maxBytes });
  const start = modelStarts(http);
  return {
    method: 'POST',
    path: '/v1/chat/completions',
    access: 'run',
    name: 'createChatCompletion',
    summary: 'Runs a council on a chat and returns its final draft',
    description:
      'Starts a run, and cancels it when its last client has gone. A last user message that begins with `### Task:`, as ' +
      'chat front ends send for titles and tags, is answered by one call of the default model, without a run.',
    tag: 'openai',
    body: reader,
    isKeyed: true,
    hasUnknown: true,
    success: COMPLETION,
    problems: [502, 503],
    async handle(ctx, caller) {
      const body = await reader.readToCompare(ctx);
      const { model, messages, stream = false, stream_options: options } = body.value;
      assertChatSupported(body.value);
      const limits = { field: 'messages', maxBytes: http.maxMaterialBytes };
      const { topic, material, lastUserText } = conversationOf(messagesIn(messages), limits);
      const wanted = { isStream: stream, hasUsage: options?.include_usage === true };
      if (isFrontEndTask(lastUserText)) {
        await blueprintOf(http, model);
        return await taskAnswer({ http, ...deps }, { ctx, caller }, { model, prompt: lastUserText, ...wanted });
      }
      const schema = await schemaOf(body.value.response_format, ['response_format'], http);
      following.takePlace(ctx.res, caller);
      const runId = await start(ctx, { body, model, topic, material, schema, caller });
      const connection = { runId, caller, isForeground: true };
      if (stream) return await streamAnswer(following, connection, { ctx, encode: chatChunks(wanted.hasUsage) });
      return runAnswer(await endOf(following, connection, ctx.res));
    },
  };
}

/** The messages of a chat, with the calls of tools in them. */
function messagesIn(messages: ChatRequest['messages']): readonly SentMessage[] {
  return messages.map(({ role, content, tool_calls: calls = [] }, index) => {
    const named = calls.map((call) => {
      const { name, arguments: given } = recordOf(fieldOf(call, 'function'));
      return { name: textOf(name) ?? 'a tool', arguments: textOf(given) ?? '' };
    });
    return { role, content, calls: named, at: ['messages', index] };
  });
}

/** The answer of an ended run. @throws {RequestRefused} 502 if it failed */
function runAnswer(run: RunState): Answer {
  const failed = runFailed(run);
  if (failed !== null) throw failed;
  return { status: 200, headers: { [RUN_ID_HEADER]: run.runId }, body: completionOf(chatTextOf(run)) };
}

/** The error of a failed run, or null if it has not failed. Clients do not repeat it: each attempt would be a new run. */
function runFailed(run: RunState): RequestRefused | null {
  const failure = failureOf(run);
  if (failure === null) return null;
  const headers = { [RUN_ID_HEADER]: run.runId, 'X-Should-Retry': 'false' };
  return refusal(failure.error, { status: 502, code: 'run_failed', headers });
}

/** The chunks after each event of a run. */
function chatChunks(hasUsage: boolean): Encode {
  let isOpen = false;
  return (run, event) => {
    const head = headOf(run);
    const opening = isOpen ? [] : [openingChunk(head)];
    isOpen = true;
    const line = progressLine(event, run);
    const progress = line === null ? [] : [progressChunk(head, line)];
    return [...opening, ...progress, ...endChunks(run, hasUsage)];
  };
}

function endChunks(run: RunState, hasUsage: boolean): readonly Buffer[] {
  const failed = runFailed(run);
  if (failed !== null) return [encoded(errorOf(problemOf(failed, '')))];
  return run.phase.status === 'completed' ? textChunks(chatTextOf(run), hasUsage) : [];
}
