/**
 * The `fetch` that the provider packages are given: one HTTP request of one model call. It follows no redirect, because the
 * key would go with it; bounds the answer; classifies every failure; and hands the package an answer in the form it can
 * read. Failures have no `cause`: it may quote the server at any length, and the server the key.
 */
import { ModelFailed } from '../errors.js';
import type { System } from '../system/system.js';
import { BodyTooLarge, boundedText, fieldOf, jsonIn } from '../system/untrusted.js';
import { readable, received } from './answer-body.js';
import { connectionFault, errorMessageOf, kindOfRefusal, modelFailed } from './failed-exchange.js';
import { redact } from './redaction.js';
import { callAborted } from './port.js';
import { requestedWaitMs } from './retry-after.js';
import type { AnswerForm, ModelServer, ServerCall, WireReading } from './server-call.js';
import { OtherForm, RequestRefused } from './server-call.js';
import type { HttpAnswer, Transport } from './transport.js';
import { post } from './transport.js';
import { unusable } from './unusable-answer.js';

export interface GuardedFetchOptions {
  readonly server: ModelServer;
  readonly wire: WireReading;
  readonly transport: Transport;
  /** A `Retry-After` counts from its time now. */
  readonly system: Pick<System, 'now' | 'after'>;
}

/** @returns the fetch of one call; it rejects with {ModelFailed} for every failure, and with {OtherForm} */
export function guardedFetch(call: ServerCall, options: GuardedFetchOptions): typeof globalThis.fetch {
  const reading = { call, wire: options.wire, after: options.system.after };
  return async (url, init) => {
    const address = url instanceof Request ? url.url : url.toString();
    const body = typeof init?.body === 'string' ? init.body : '';
    const form: AnswerForm = wantsStream(address, body) ? 'stream' : 'whole';
    try {
      if (call.received !== null) return received(call.received, reading);
      // The packages send a record of names in lower case.
      const answer = await accepted(address, { ...init, body }, { call, options });
      return await readable(answer, form, reading);
    } catch (error) {
      throw failureOf(error, call, options.server);
    }
  };
}

/** Every wire marks a streamed request in the body, but for Gemini, which does in the address. */
function wantsStream(url: string, body: string): boolean {
  return url.includes(':streamGenerateContent') || body.includes('"stream":true');
}

/** The answer to a request that the server accepts. @throws {ModelFailed} for a refusal */
async function accepted(
  url: string,
  { headers, body }: { readonly headers?: RequestInit['headers']; readonly body: string },
  {
    call,
    options: { server, transport, system },
  }: { readonly call: ServerCall; readonly options: GuardedFetchOptions },
): Promise<HttpAnswer> {
  const all = new Map<string, unknown>([...Object.entries(headers ?? {}), ...Object.entries(server.headers)]);
  const sent = Object.fromEntries([...all].filter((each): each is [string, string] => typeof each[1] === 'string'));
  const answer = await post(url, { headers: sent, body, signal: call.signal, transport });
  if (answer.isSuccess) return answer;
  throw refusal(answer, await boundedText(answer, answer.maxBytes).catch(() => ''), { call, server, now: system.now });
}

function refusal(
  { status, headers }: HttpAnswer,
  said: string,
  { call, server, now }: { readonly call: ServerCall; readonly server: ModelServer; readonly now: System['now'] },
): ModelFailed {
  if (status >= 300 && status < 400) return modelFailed(`${call.purpose}: it answered with a redirect`, 'redirected');
  const body = jsonIn(said);
  const kind = (server.kindOf ?? kindOfRefusal)(status, body ?? said);
  const hint = server.hints.get(kind);
  const words = redact(errorMessageOf(body), call.hidden);
  const waitMs = requestedWaitMs(headers, body, now());
  const why = `it answered ${status}${hint === undefined ? '' : ` (${hint})`}${words === '' ? '' : `: ${words}`}`;
  const failure = modelFailed(`${call.purpose}: ${why}`, kind, waitMs === null ? {} : { retryAfterMs: waitMs });
  return new RequestRefused(failure, { status, said });
}

/** The failure behind whatever ended a request. */
export function failureOf(error: unknown, { purpose, signal }: ServerCall, server: ModelServer): Error {
  if (signal.aborted) return callAborted(signal);
  if (error instanceof ModelFailed || error instanceof OtherForm) return error;
  if (error instanceof BodyTooLarge) return modelFailed(`${purpose}: its answer is too large`, 'answer_too_large');
  const { why, kind } = connectionFault(error, server.addressSetting);
  return modelFailed(`${purpose}: ${why}`, kind);
}

/** The failure behind what a package throws: it wraps errors of a fetch or a body; its own say that it cannot read an answer. */
export function failureBehind(error: unknown, call: ServerCall, server: ModelServer): Error {
  for (let each = error; each instanceof Error; each = each.cause) {
    const isOurs = each instanceof ModelFailed || each instanceof OtherForm;
    if (isOurs || typeof fieldOf(each, 'code') === 'string') return failureOf(each, call, server);
  }
  if (call.signal.aborted) return callAborted(call.signal);
  return unusable(call, 'it has another form than an answer has', 'unreadable_answer');
}
