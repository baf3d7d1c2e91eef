/** The routes under /v1/responses: start, poll, resume and cancel a run as a response. */
import type { RouterContext } from '@koa/router';
import { assertMayRead } from '../api/access/authentication.js';
import type { ResponseRequest, ResponseEvent } from '../generated/schemas.js';
import type { Caller } from '../keys/caller.js';
import type { Answer } from '../http/answer.js';
import { bodyOf, startBodyBytes } from '../http/body.js';
import { encodeEvent } from '../http/event-stream.js';
import { outcomeUnknown, parameterIn } from '../http/route.js';
import { queryOf } from '../http/query.js';
import type { HttpContext, Route } from '../http/route.js';
import { RunFinished } from '../run/errors.js';
import { runStream } from '../run/events.js';
import type { RunState } from '../run/state.js';
import { modelStarts } from './council-model.js';
import { quoted, refusal } from './errors.js';
import type { FollowDeps } from './followed-run.js';
import { endOf } from './followed-run.js';
import { progressLine } from './progress.js';
import { responseBase, responseOf, runIdOfResponse, messageIdOf, messageOf, textOf } from './response-object.js';
import type { Encode } from './stream.js';
import { RUN_ID_HEADER, comment, streamAnswer } from './stream.js';
import { lacksOutput, resultOf, schemaOf } from './output-format.js';
import type { SentMessage } from './topic.js';
import { conversationOf } from './topic.js';
import { assertResponseSupported } from './unsupported.js';
import { piecesOf } from './pieces.js';

export function responseRoutes(following: FollowDeps): readonly Route[] {
  return [createRoute(following), getRoute(following), cancelRoute(following.http)];
}

const RESPONSE = {
  status: 200,
  description: 'The response',
  schema: 'response-object.json',
  headers: [RUN_ID_HEADER],
} as const;

const STREAMED = {
  alsoAs: {
    'text/event-stream': { description: 'With `stream`: the events of the response', each: 'response-event.json' },
  },
} as const;

function createRoute(following: FollowDeps): Route {
  const { http } = following;
  const maxBytes = startBodyBytes(http.maxMaterialBytes);
  const reader = bodyOf(http, 'response-request.json', { isRequired: true, maxBytes });
  const start = modelStarts(http);
  return {
    method: 'POST',
    path: '/v1/responses',
    access: 'run',
    name: 'createResponse',
    summary: 'Runs a council on an input and returns its final draft',
    description:
      'Starts a run. In the foreground the run is cancelled when its last client has gone; with `background` it goes on, ' +
      'and the answer comes at once unless `stream` is set.',
    tag: 'openai',
    body: reader,
    isKeyed: true,
    hasUnknown: true,
    success: { ...RESPONSE, description: 'The response; `queued` in the background', ...STREAMED },
    problems: [503],
    async handle(ctx, caller) {
      const body = await reader.readToCompare(ctx);
      const { model, stream = false, background = false } = body.value;
      assertResponseSupported(body.value);
      const { previous_response_id: previous, text } = body.value;
      const earlier = previous === undefined ? '' : await transcriptOf(http, previous, caller);
      const limits = { field: 'input', earlier, maxBytes: http.maxMaterialBytes };
      const { topic, material } = conversationOf(messagesIn(body.value), limits);
      const schema = await schemaOf(text?.format, ['text', 'format'], http);
      if (stream || !background) following.takePlace(ctx.res, caller);
      const runId = await start(ctx, { body, model, topic, material, schema, caller });
      const connection = { runId, caller, isForeground: !background };
      if (stream) return await streamAnswer(following, connection, { ctx, encode: eventsAfter(-1) });
      if (background) return answerOf(runId, responseBase(await stateOf(http, runId), 'queued'));
      return answerOf(runId, responseOf(await endOf(following, connection, ctx.res)));
    },
  };
}

function getRoute(following: FollowDeps): Route {
  const { http } = following;
  const query = queryOf(http.schemas, 'response-query.json');
  return {
    method: 'GET',
    path: '/v1/responses/{response_id}',
    access: ['read', 'run'],
    name: 'getResponse',
    summary: 'Returns a response, or resumes its stream',
    description: 'The events of a run have the same numbers at each request, also after a restart of the service.',
    tag: 'openai',
    query,
    success: { ...RESPONSE, ...STREAMED },
    async handle(ctx, caller) {
      const { stream, starting_after: startingAfter = -1 } = query.read(ctx);
      const runId = runIdIn(ctx);
      const run = await stateOf(http, runId);
      assertMayRead(caller, run.request);
      if (stream !== 'true') return answerOf(runId, responseOf(run));
      following.takePlace(ctx.res, caller);
      const connection = { runId, caller, isForeground: false };
      return await streamAnswer(following, connection, { ctx, encode: eventsAfter(startingAfter) });
    },
  };
}

function cancelRoute(http: HttpContext): Route {
  return {
    method: 'POST',
    path: '/v1/responses/{response_id}/cancel',
    access: 'run',
    name: 'cancelResponse',
    summary: 'Cancels a response; one that has ended stays as it is',
    tag: 'openai',
    success: RESPONSE,
    async handle(ctx, caller) {
      const runId = runIdIn(ctx);
      const { request } = await stateOf(http, runId);
      assertMayRead(caller, request);
      return answerOf(runId, responseOf(await cancelled(http, runId, caller.actor)));
    },
  };
}

async function cancelled(http: HttpContext, runId: string, actor: string | null): Promise<RunState> {
  try {
    const run = await http.withinDeadline(http.registry.cancel(runId, actor), outcomeUnknown(runStream(runId)));
    http.log.info({ runId, actor }, 'run cancelled');
    return run;
  } catch (error) {
    if (error instanceof RunFinished) return await stateOf(http, runId);
    throw error;
  }
}

function answerOf(runId: string, body: object): Answer {
  return { status: 200, headers: { [RUN_ID_HEADER]: runId }, body };
}

/** The run of the response in the path. @throws {RequestRefused} 404 if the text can be no id of a response */
function runIdIn(ctx: RouterContext): string {
  const runId = runIdOfResponse(parameterIn(ctx, 'response_id'));
  if (runId === null) throw unknownResponse();
  return runId;
}

/** @throws {RequestRefused} 404 */
async function stateOf(http: HttpContext, runId: string): Promise<RunState> {
  const run = await http.withinDeadline(http.queries.state(runId));
  if (run === null) throw unknownResponse();
  return run;
}

function unknownResponse(): Error {
  return refusal('There is no response with this id', { status: 404, code: 'response_not_found' });
}

/** What a completed response began with and answered. @throws {RequestRefused} 404, 400 if it has no result */
async function transcriptOf(http: HttpContext, responseId: string, caller: Caller): Promise<string> {
  const at = ['previous_response_id'];
  const runId = runIdOfResponse(responseId);
  const run = runId === null ? null : await http.withinDeadline(http.queries.state(runId));
  if (run === null) {
    const message = `There is no response ${quoted(responseId)}`;
    throw refusal(message, { status: 404, code: 'response_not_found', at });
  }
  assertMayRead(caller, run.request);
  if (run.phase.status !== 'completed') {
    throw refusal(`The response ${quoted(responseId)} is not completed`, { code: 'response_not_completed', at });
  }
  const { inputTopic, material } = run.request;
  const parts = [...(material === undefined ? [] : [material]), `User: ${inputTopic}`, `Assistant: ${resultOf(run)}`];
  return parts.join('\n\n');
}

/** The events of a response after a sequence number. Progress is in comments, which have no number. */
function eventsAfter(startingAfter: number): Encode {
  const next = responseEvents();
  return (run, event) => {
    const line = progressLine(event, run);
    const events = next(run).filter((each) => each.sequence_number > startingAfter);
    return [...(line === null ? [] : [comment(line)]), ...events.map((each) => encodeEvent(null, each.type, each))];
  };
}

/** The messages of a request, with the calls of tools and their results. @throws {RequestRefused} 400 for other items */
function messagesIn({ input, instructions }: ResponseRequest): readonly SentMessage[] {
  const before = instructions === undefined ? [] : [{ role: 'system', content: instructions, at: ['instructions'] }];
  if (typeof input === 'string') return [...before, { role: 'user', content: input, at: ['input'] }];
  const messages = input.map((item, index): SentMessage => {
    const { type = 'message', role = '', content, name = 'a tool', arguments: given = '', output } = item;
    const at = ['input', index];
    switch (type) {
      case 'message':
        return { role, content, at };
      case 'function_call':
        return { role: 'assistant', calls: [{ name, arguments: given }], at };
      case 'function_call_output':
        return { role: 'tool', content: output, at };
      case 'reasoning':
        return { role: 'assistant', at };
      default: {
        const message = `Input of type ${quoted(type)} is not supported; message, function_call and its output are`;
        throw refusal(message, { code: 'unsupported_content', at: [...at, 'type'] });
      }
    }
  });
  return [...before, ...messages];
}

type Unnumbered = Omit<ResponseEvent, 'sequence_number'>;

/** A function that takes the run after each of its events, from the first, and returns the events that follow from it. */
function responseEvents(): (run: RunState) => readonly ResponseEvent[] {
  let next = 0;
  let [isCreated, isBegun] = [false, false];
  return (run) => {
    const events: Unnumbered[] = [];
    if (!isCreated) events.push({ type: 'response.created', response: responseBase(run, 'queued') });
    isCreated = true;
    if (!isBegun && run.phase.status !== 'pending') {
      isBegun = true;
      events.push({ type: 'response.in_progress', response: responseBase(run, 'in_progress') });
    }
    if (run.phase.status === 'completed') events.push(...outputEvents(run));
    if (run.phase.status === 'failed') events.push({ type: 'response.failed', response: responseOf(run) });
    const first = next;
    next += events.length;
    return events.map((event, index) => ({ ...event, sequence_number: first + index }));
  };
}

/** The final draft as events, up to the end. */
function outputEvents(run: RunState): readonly Unnumbered[] {
  const text = resultOf(run);
  const item = messageOf(run.runId, text);
  const [inOutput, inItem] = [{ output_index: 0 } as const, { output_index: 0, content_index: 0 } as const];
  const ofItem = { item_id: messageIdOf(run.runId), ...inItem };
  return [
    { type: 'response.output_item.added', ...inOutput, item: { ...item, status: 'in_progress', content: [] } },
    { type: 'response.content_part.added', ...ofItem, part: textOf('') },
    ...piecesOf(text).map((delta): Unnumbered => ({
      type: 'response.output_text.delta',
      ...ofItem,
      delta,
      logprobs: [],
    })),
    { type: 'response.output_text.done', ...ofItem, text, logprobs: [] },
    { type: 'response.content_part.done', ...ofItem, part: textOf(text) },
    { type: 'response.output_item.done', ...inOutput, item },
    { type: lacksOutput(run) ? 'response.incomplete' : 'response.completed', response: responseOf(run) },
  ];
}
