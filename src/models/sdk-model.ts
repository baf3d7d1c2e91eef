/**
 * Any provider behind the port, by the provider packages of the Vercel AI SDK (`LanguageModelV3`). They put the requests
 * and read the answers; the policies are ours: the guarded fetch, one request per call but for another form of it, and
 * classified failures.
 */
import type { LanguageModelV3 } from '@ai-sdk/provider';
import type { ProviderSettings } from '../config-providers.js';
import type { ModelFailureKind } from '../errors.js';
import { ModelFailed } from '../errors.js';
import { BoundedMap } from '../system/bounded-map.js';
import type { System } from '../system/system.js';
import { settleRequest } from './billing.js';
import type { AnswerForm } from './answer-body.js';
import { OtherForm } from './answer-body.js';
import { failureBehind, guardedFetch } from './guarded-fetch.js';
import type { ModelServer, ServerCall } from './server-call.js';
import { ServerRefused, hintsOf } from './server-call.js';
import type { LanguageModel, ModelAnswer, ModelRequest } from './port.js';
import { callAborted } from './port.js';
import { changedForm } from './request-form.js';
import type { Answered, AnsweredCall } from './sdk-answer.js';
import { answerIn, joined } from './sdk-answer.js';
import { optionsOf, textsOf } from './sdk-request.js';
import type { Transport } from './transport.js';
import type { RequestForm, Wire } from './wires/wire.js';
import { FIRST_FORM } from './wires/wire.js';
import { WIRES } from './wires/wires.js';

/**
 * The model of one provider. Loads the package of its wire; sends nothing.
 *
 * One request per call, because a run records its own retries, with three exceptions within a call: a request that the
 * server refuses is put in another form; a stream that fails is asked for again as a whole; an answer that came in the
 * other form is read again. A repeated request that may have been billed is settled first, so that it counts, and reserves
 * anew in a run with a budget. The form that a server accepts is remembered per model until the process ends.
 */
export async function providerModel(
  { name: provider, api, baseUrl, apiKey, model: defaultModel, settings }: ProviderSettings,
  { transport, system }: { readonly transport: Transport; readonly system: Pick<System, 'now' | 'after'> },
): Promise<LanguageModel> {
  const wire = await WIRES[api]({ baseUrl, apiKey });
  const server = { headers: wire.headers, addressSetting: settings.baseUrl, hints: hintsOf(settings) };
  const forms = new BoundedMap<string, RequestForm>(MAX_REMEMBERED);
  const modelIn = keptModels(wire);

  return {
    provider,
    defaultModel,
    async ask(request, { signal }) {
      if (signal.aborted) throw callAborted(signal);
      const name = request.model ?? defaultModel;
      let form = forms.get(name) ?? FIRST_FORM;
      let isLasting = form !== FIRST_FORM;
      for (;;) {
        try {
          const call = callOf(request, { name, signal });
          const reader = wire.reader(call);
          const fetch = guardedFetch(call, { server, reader, transport, system });
          const answer = await answered(modelIn(name, form, { fetch, signal }), {
            request,
            form,
            call,
            server,
            reader,
          });
          if (isLasting) forms.set(name, form);
          return answer;
        } catch (error) {
          const other = otherForm(form, request, error);
          if (other === null) throw error;
          await settleRequest(request, error, signal);
          if (form.streams && !other.streams) request.onStart?.();
          isLasting = isLastingChange(form, other, error);
          form = other;
        }
      }
    },
  };

  function callOf(
    request: ModelRequest,
    { name, signal }: { readonly name: string; readonly signal: AbortSignal },
  ): ServerCall {
    return {
      purpose: `Cannot get an answer from ${provider} for model "${name}"`,
      hidden: { key: apiKey, texts: textsOf(request) },
      ...{ signal, rounds: request.rounds?.length ?? 0 },
    };
  }
}

interface CallFetch {
  readonly fetch: typeof globalThis.fetch;
  readonly signal: AbortSignal;
}

/** The package's models, by name and form: building one costs a third of a millisecond. */
function keptModels(wire: Wire): (name: string, form: RequestForm, call: CallFetch) => LanguageModelV3 {
  const models = new BoundedMap<string, LanguageModelV3>(MAX_REMEMBERED);
  /** The packages pass on a call's signal and nothing else of it. */
  const fetches = new WeakMap<AbortSignal, typeof globalThis.fetch>();
  const fetchOfCall: typeof globalThis.fetch = (url, init) => {
    const fetch = init?.signal ? fetches.get(init.signal) : undefined;
    if (fetch === undefined) throw new TypeError('Cannot send a request outside a model call');
    return fetch(url, init);
  };
  return (name, form, { fetch, signal }) => {
    fetches.set(signal, fetch);
    const key = JSON.stringify([name, form]);
    const model = models.get(key) ?? wire.model(name, form, fetchOfCall);
    models.set(key, model);
    return model;
  };
}

/**
 * The form to try after a failure, or null. A run never fails because a client follows its stream: after a failure
 * that may be the stream's own, the server is asked for the whole answer.
 */
function otherForm(form: RequestForm, request: ModelRequest, error: unknown): RequestForm | null {
  const changed = error instanceof ServerRefused ? changedForm(form, request, error) : null;
  if (changed !== null || request.onToken === undefined || !form.streams) return changed;
  const mayBeOfStream = error instanceof ModelFailed && !NOT_OF_STREAM.has(error.data.kind);
  return mayBeOfStream ? { ...form, streams: false } : null;
}

/** Failures that a whole answer has too. */
const NOT_OF_STREAM: ReadonlySet<ModelFailureKind> = new Set<ModelFailureKind>([
  ...(['aborted', 'model_unusable', 'connection_refused', 'host_unknown', 'unreachable', 'tls_failed'] as const),
  ...(['unauthorized', 'quota_used_up', 'rate_limited', 'prompt_blocked', 'content_filter', 'refused'] as const),
  ...(['safety', 'blocklist', 'prohibited_content', 'spii', 'language', 'recitation', 'max_tokens'] as const),
]);

/** Whether the other form is the one to try first from now on: streams may fail once, and work the next time. */
function isLastingChange(form: RequestForm, other: RequestForm, error: unknown): boolean {
  return form.streams === other.streams || (error instanceof ServerRefused && !error.data.retryable);
}

/** Most models that are remembered: their names come from blueprints. */
const MAX_REMEMBERED = 1000;

interface Asked extends AnsweredCall {
  readonly server: ModelServer;
}

/** Asks once. Some servers answer in the other form than was asked for: the answer that came is read in that form. */
async function answered(model: LanguageModelV3, asked: Asked): Promise<ModelAnswer> {
  const { request, form, call, server } = asked;
  const { onToken } = request;
  const isStreamed = onToken !== undefined && form.streams;
  const options = { ...optionsOf(request, form), abortSignal: call.signal };
  const read = async (as: AnswerForm, onChunk?: (text: string) => void): Promise<Answered> => {
    try {
      return as === 'whole'
        ? await model.doGenerate(options)
        : await joined((await model.doStream(options)).stream, onChunk);
    } catch (error) {
      throw failureBehind(error, call, server);
    }
  };
  let isWhole = !isStreamed;
  const answer = await read(isStreamed ? 'stream' : 'whole', onToken).catch((error: unknown) => {
    if (!(error instanceof OtherForm)) throw error;
    isWhole = true;
    return read(error.form);
  });
  const usable = answerIn(answer, asked);
  if (isWhole && usable.text !== '') onToken?.(usable.text);
  return usable;
}
