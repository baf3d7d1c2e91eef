/** One call of the default model, for requests of chat front ends that no council should answer. */
import type { ServerResponse } from 'node:http';
import { clientOf } from '../api/access/limits.js';
import { whenClosed } from '../http/answer.js';
import { enforceLimits } from '../http/limits.js';
import type { HttpContext } from '../http/route.js';
import type { Caller } from '../keys/caller.js';
import type { BoundedModel } from '../models/bounded.js';
import type { ModelAnswer } from '../models/port.js';
import type { RouterContext } from '@koa/router';

export type Model = Pick<BoundedModel, 'ask'>;

/** How chat front ends begin prompts for titles, tags and follow-ups (Open WebUI 0.6). */
const TASK_MARK = '### Task:';

/** Whether a message is a task of a chat front end. */
export function isFrontEndTask(text: string): boolean {
  return text.startsWith(TASK_MARK);
}

export interface ModelDeps {
  readonly http: HttpContext;
  readonly model: Model;
  readonly modelTimeoutMs: number;
}

/** A running call of the default model. */
export interface BegunCall {
  readonly id: string;
  readonly answer: Promise<ModelAnswer>;
}

/**
 * Asks the default model once. The call counts as a run for the limits while it lasts, and ends with its client.
 *
 * @throws {RequestRefused} 429
 */
export function askDefaultModel(
  { http, model, modelTimeoutMs }: ModelDeps,
  prompt: string,
  { ctx, caller }: { readonly ctx: RouterContext; readonly caller: Caller },
): BegunCall {
  const id = http.system.uuid();
  enforceLimits(ctx, http.limits.run(clientOf(ctx.req, caller, http), id));
  const request = { system: SYSTEM, prompt, promptInput: { ...PROMPT_INPUT, topic: prompt }, answer: 'draft' } as const;
  const conditions = { runId: id, timeoutMs: modelTimeoutMs, outage: null, signal: untilClosed(ctx.res) };
  return { id, answer: model.ask(request, conditions).finally(() => http.limits.ended(id)) };
}

function untilClosed(response: ServerResponse): AbortSignal {
  const gone = new AbortController();
  whenClosed(response, () => gone.abort('the client has gone'));
  return gone.signal;
}

const SYSTEM = 'Do the task of the last message, and answer in the form that it asks for.';

const PROMPT_INPUT = { label: 'Assistant', role: 'agent', systemPrompt: SYSTEM, draft: null, feedback: [] } as const;
