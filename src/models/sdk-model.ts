/**
 * Any provider behind the port, by the provider packages of the Vercel AI SDK (`LanguageModelV3`). They put the requests
 * and read the answers; the policies are ours: the guarded fetch, one request per call but for another form of it, and
 * classified failures.
 */
import type { LanguageModelV3 } from '@ai-sdk/provider';
import type { ProviderSettings } from '../config-providers.js';
import { BoundedMap } from '../system/bounded-map.js';
import type { System } from '../system/system.js';
import type { AnswerForm } from './answer-body.js';
import { OtherForm } from './answer-body.js';
import { failureBehind, guardedFetch } from './guarded-fetch.js';
import type { ModelServer, ServerCall } from './server-call.js';
import { hintsOf, hintsOfNamed } from './server-call.js';
import type { LanguageModel, ModelAnswer } from './port.js';
import { callAborted } from './port.js';
import { askInForms } from './request-form.js';
import type { Answered, AnsweredCall } from './sdk-answer.js';
import { answerIn, joined, withUsage } from './sdk-answer.js';
import { optionsOf, textsOf } from './sdk-request.js';
import type { Transport } from './transport.js';
import type { RequestForm, RequestPut, Wire } from './wires/wire.js';
import { WIRES } from './wires/wires.js';

/**
 * The model of one provider. Loads the package of its wire; sends nothing.
 *
 * One request per call, because a run records its own retries, with three exceptions within a call: a request that the
 * server refuses is put in another form; a stream that fails is asked for again as a whole; an answer that came in the
 * other form is read again. A repeated request that may have been billed is settled first, so that it counts, and reserves
 * again in a run with a budget. The form that a server accepts is remembered per model until the process ends.
 */
export async function providerModel(
  { name: provider, api, baseUrl, apiKey, model: defaultModel, settings }: ProviderSettings,
  { transport, system }: { readonly transport: Transport; readonly system: Pick<System, 'now' | 'after'> },
): Promise<LanguageModel> {
  const wire = await WIRES[api]({ baseUrl, apiKey });
  const ofDefault = { headers: wire.headers, addressSetting: settings.baseUrl, hints: hintsOf(settings) };
  const ofNamed = { ...ofDefault, hints: hintsOfNamed(ofDefault.hints, settings) };
  const forms = new BoundedMap<string, RequestForm>(MAX_REMEMBERED);
  const modelIn = keptModels(wire);

  return {
    provider,
    defaultModel,
    async ask(request, { signal }) {
      if (signal.aborted) throw callAborted(signal);
      const name = request.model ?? defaultModel;
      const server = name === defaultModel ? ofDefault : ofNamed;
      return await askInForms(request, { name, signal, forms }, async (form) => {
        const call: ServerCall = {
          purpose: `Cannot get an answer from ${provider} for model "${name}"`,
          hidden: { key: apiKey, texts: textsOf(request) },
          signal,
          now: system.now,
          rounds: request.rounds?.length ?? 0,
        };
        const reader = wire.reader(call);
        const fetch = guardedFetch(call, { server, reader, transport, system });
        const { maxOutputTokens } = request;
        const put = modelIn(name, { form, maxOutputTokens, fetch }, signal);
        return await answered(put, { request, form, call, server, reader, cacheMark: wire.cacheMark });
      });
    },
  };
}

/** Keeps the package's models by name and form of their requests, because it takes 0.3 ms to build one. */
function keptModels(wire: Wire): (name: string, put: RequestPut, signal: AbortSignal) => LanguageModelV3 {
  const models = new BoundedMap<string, LanguageModelV3>(MAX_REMEMBERED);
  /** The packages pass on a call's signal and nothing else of it. */
  const fetches = new WeakMap<AbortSignal, typeof globalThis.fetch>();
  const fetchOfCall: typeof globalThis.fetch = (url, init) => {
    const fetch = init?.signal ? fetches.get(init.signal) : undefined;
    if (fetch === undefined) throw new TypeError('Cannot send a request outside a model call');
    return fetch(url, init);
  };
  return (name, { form, maxOutputTokens, fetch }, signal) => {
    fetches.set(signal, fetch);
    const key = JSON.stringify([name, form, maxOutputTokens]);
    const model = models.get(key) ?? wire.model(name, { form, maxOutputTokens, fetch: fetchOfCall });
    models.set(key, model);
    return model;
  };
}

/** Most models that are remembered: their names come from blueprints. */
const MAX_REMEMBERED = 1000;

interface Asked extends AnsweredCall {
  readonly server: ModelServer;
  readonly cacheMark: Wire['cacheMark'];
}

/** Asks once. Some servers answer in the other form than was asked for: the answer that came is read in that form. */
async function answered(model: LanguageModelV3, asked: Asked): Promise<ModelAnswer> {
  const { request, form, call, server } = asked;
  const { onToken } = request;
  const isStreamed = onToken !== undefined && form.streams;
  const options = { ...optionsOf(request, form, asked.cacheMark), abortSignal: call.signal };
  const read = async (as: AnswerForm, onChunk?: (text: string) => void): Promise<Answered> => {
    try {
      return as === 'whole'
        ? await model.doGenerate(options)
        : await joined((await model.doStream(options)).stream, onChunk);
    } catch (error) {
      throw withUsage(failureBehind(error, call, server), asked.reader.usage());
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
