/**
 * The `fetch` that the provider packages are given: one HTTP request of one model call. It follows no redirect, because the
 * key would go with it; bounds the answer; classifies every failure; and hands the package an answer in the form it can
 * read. Failures have no `cause`: it may quote the server at any length, and the server the key.
 */
import type { Dispatcher } from 'undici';
import { request } from 'undici';
import { ModelFailed } from '../errors.js';
import type { System } from '../system/system.js';
import { BodyTooLarge, boundedText, jsonIn } from '../system/untrusted.js';
import type { AnswerForm, Reading } from './answer-body.js';
import { OtherForm, readable, received } from './answer-body.js';
import { connectionFault, errorMessageOf, kindOfRefusal, modelFailed, recordedKind } from './failed-exchange.js';
import { redact } from './redaction.js';
import { callAborted } from './port.js';
import { requestedWaitMs } from './retry-after.js';
import type { AnswerReader, ModelServer, ServerCall } from './server-call.js';
import { ServerRefused } from './server-call.js';
import type { Transport } from './transport.js';
import { unusable } from './unusable-answer.js';

export interface GuardedFetchOptions {
  readonly server: ModelServer;
  readonly reader: AnswerReader;
  readonly transport: Transport;
  readonly system: Pick<System, 'after'>;
}

/** Most bytes read of the body of a refusal. */
const MAX_REFUSAL_BYTES = 64 * 1024;

/** The fetch of one call. `failureBehind` classifies what it rejects with, and what reading its answer rejects with. */
export function guardedFetch(call: ServerCall, options: GuardedFetchOptions): typeof globalThis.fetch {
  const reading: Reading = { call, reader: options.reader, after: options.system.after, received: null };
  return async (url, init) => {
    const response = await received(reading);
    if (response !== null) return response;
    const address = url instanceof Request ? url.url : url.toString();
    const text = typeof init?.body === 'string' ? init.body : '';
    const form: AnswerForm = wantsStream(address, text) ? 'stream' : 'whole';
    // The packages send a record of names in lower case.
    const body = await accepted(new URL(address), { ...init, body: text }, { call, options });
    return await readable(body, form, reading);
  };
}

/** Every wire marks a streamed request in the body, but for Gemini, which does in the address. */
function wantsStream(url: string, body: string): boolean {
  return url.includes(':streamGenerateContent') || body.includes('"stream":true');
}

/** The body of the answer to a request that the server accepts. Rejects with {ModelFailed} for a refusal, or with undici's errors. */
async function accepted(
  url: URL,
  { headers, body }: { readonly headers?: RequestInit['headers']; readonly body: string },
  { call, options }: { readonly call: ServerCall; readonly options: GuardedFetchOptions },
): Promise<Dispatcher.ResponseData['body']> {
  const { server, transport } = options;
  const all = new Map<string, unknown>([...Object.entries(headers ?? {}), ...Object.entries(server.headers)]);
  const sent = Object.fromEntries([...all].filter((each): each is [string, string] => typeof each[1] === 'string'));
  const answer = await request(url, {
    method: 'POST',
    headers: sent,
    body,
    signal: call.signal,
    dispatcher: transport(url),
    // The signal alone ends a call: a slow model needs more than undici's 300 s.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  if (answer.statusCode >= 200 && answer.statusCode < 300) return answer.body;
  const said = await boundedText(answer, MAX_REFUSAL_BYTES).catch(() => '');
  throw refusal(answer, said, { call, server });
}

function refusal(
  { statusCode: status, headers }: Pick<Dispatcher.ResponseData, 'statusCode' | 'headers'>,
  said: string,
  { call, server }: { readonly call: ServerCall; readonly server: ModelServer },
): ModelFailed {
  if (status >= 300 && status < 400) return modelFailed(`${call.purpose}: it answered with a redirect`, 'redirected');
  const body = jsonIn(said);
  const meant = (server.kindOf ?? kindOfRefusal)(status, body ?? said);
  const kind = recordedKind(status, meant);
  const hint = server.hints.get(meant);
  const words = redact(errorMessageOf(body), call.hidden);
  const waitMs = requestedWaitMs(headers, body, call.now());
  const why = `it answered ${status}${hint === undefined ? '' : ` (${hint})`}${words === '' ? '' : `: ${words}`}`;
  const failure = modelFailed(`${call.purpose}: ${why}`, kind, waitMs);
  return new ServerRefused(failure, { status, said, meant });
}

/**
 * The failure of a call, by what a package throws: our own errors and undici's, perhaps as the cause of an error of the
 * package. Its other errors say that it cannot read the answer.
 */
export function failureBehind(thrown: unknown, call: ServerCall, { addressSetting }: ModelServer): Error {
  const { purpose, signal } = call;
  if (signal.aborted) return callAborted(signal);
  for (let each = thrown; each instanceof Error; each = each.cause) {
    if (each instanceof ModelFailed || each instanceof OtherForm) return each;
    if (each instanceof BodyTooLarge) return modelFailed(`${purpose}: its answer is too large`, 'answer_too_large');
    const fault = connectionFault(each, addressSetting);
    if (fault !== null) return modelFailed(`${purpose}: ${fault.why}`, fault.kind);
  }
  return unusable(call, 'it has another form than an answer has', 'unreadable_answer');
}
