/**
 * Any provider behind the port, by the provider packages of the Vercel AI SDK (`LanguageModelV3`). They put the requests
 * and read the answers; the policies are ours: the guarded fetch, one request per call but for another form of it, and
 * classified failures.
 */
import type { LanguageModelV3, LanguageModelV3CallOptions } from '@ai-sdk/provider';
import type { Dispatcher } from 'undici';
import { ModelFailed } from '../errors.js';
import type { System } from '../system/system.js';
import type { GuardedFetch, ModelServer, ServerCall } from './guarded-fetch.js';
import { OtherForm, RequestRefused, guardedFetch } from './guarded-fetch.js';
import type { LanguageModel, ModelAnswer, ModelRequest } from './port.js';
import { callAborted } from './port.js';
import { changedForm } from './request-form.js';
import type { Answered, AnsweredCall } from './sdk-answer.js';
import { answerIn, joined } from './sdk-answer.js';
import { failureBehind } from './sdk-failure.js';
import { optionsOf, textsOf } from './sdk-request.js';
import type { RequestForm, Wire } from './wires/wire.js';
import { FIRST_FORM } from './wires/wire.js';

export interface SdkModelOptions {
  /** Name of the provider. */
  readonly provider: string;
  /** Used when a request names no model. */
  readonly model: string;
  /** Never quoted in a message. */
  readonly apiKey: string | null;
  readonly wire: Wire;
  readonly server: Pick<ModelServer, 'addressSetting' | 'hints'>;
  readonly transport: Dispatcher;
  readonly system: Pick<System, 'now'>;
}

/**
 * One request per call, because a run records its own retries, with three exceptions within a call: a request that the
 * server refuses is put in another form; a stream that cannot be read is asked for again as a whole; an answer that came
 * in the other form is read again. The form that a server accepts is remembered per model until the process ends.
 */
export function sdkModel(options: SdkModelOptions): LanguageModel {
  const { provider, model: defaultModel, apiKey, wire, transport, system } = options;
  const server: ModelServer = { ...options.server, headers: wire.headers };
  const guarded = guardedFetch({ server, wire: wire.reading, transport, now: system.now });
  const forms = new Map<string, RequestForm>();
  const models = new Map<string, LanguageModelV3>();

  /** The package's model, kept: building one costs a third of a millisecond. */
  function modelIn(name: string, form: RequestForm): LanguageModelV3 {
    const key = JSON.stringify([name, form.limit, form.reasoning, form.usageInStream]);
    const known = models.get(key);
    if (known !== undefined) return known;
    const made = wire.model(name, form, guarded.fetch);
    remember(models, key, made);
    return made;
  }

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
          const answer = await answered(modelIn(name, form), { request, form, call, guarded, server, wire });
          if (isLasting) remember(forms, name, form);
          return answer;
        } catch (error) {
          const other = otherForm(form, request, error);
          if (other === null) throw error;
          if (form.streams && !other.streams) request.onStart?.();
          isLasting = !isKind(error, 'unreadable_answer');
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
      hidden: [apiKey ?? '', ...textsOf(request)],
      ...{ signal, rounds: request.rounds?.length ?? 0, reading: {}, received: null },
    };
  }
}

/**
 * The form to try after a failure, or null. A run never fails because somebody watches it: a stream that cannot be read,
 * or a server without the address for streams (404, 405), is asked for the whole answer.
 */
function otherForm(form: RequestForm, request: ModelRequest, error: unknown): RequestForm | null {
  const isStreamed = request.onToken !== undefined && form.streams;
  if (isStreamed && STREAM_FAULTS.some((kind) => isKind(error, kind))) return { ...form, streams: false };
  return error instanceof RequestRefused ? changedForm(form, request, error) : null;
}

const STREAM_FAULTS = ['unreadable_answer', 'model_unknown', 'http_error'];

function isKind(error: unknown, kind: string): boolean {
  return error instanceof ModelFailed && error.data.kind === kind;
}

/** Model names come from blueprints, so a map is bounded: when full it is cleared and learnt again. */
function remember<T>(map: Map<string, T>, key: string, value: T): void {
  if (map.size >= MAX_REMEMBERED) map.clear();
  map.set(key, value);
}

const MAX_REMEMBERED = 1000;

interface Asked extends AnsweredCall {
  readonly guarded: GuardedFetch;
  readonly server: ModelServer;
}

async function answered(model: LanguageModelV3, asked: Asked): Promise<ModelAnswer> {
  const { request, form } = asked;
  const { onToken } = request;
  if (onToken !== undefined && form.streams) return await streamedAnswer(model, asked, onToken);
  const answer = await wholeAnswer(model, asked);
  if (answer.text !== '') onToken?.(answer.text);
  return answer;
}

async function wholeAnswer(model: LanguageModelV3, asked: Asked): Promise<ModelAnswer> {
  return await inEitherForm(
    () => asking(asked, (options) => model.doGenerate(options)),
    () => asking(asked, async (options) => await joined((await model.doStream(options)).stream, () => undefined)),
    asked,
  );
}

async function streamedAnswer(
  model: LanguageModelV3,
  asked: Asked,
  onToken: (text: string) => void,
): Promise<ModelAnswer> {
  return await inEitherForm(
    () => asking(asked, async (options) => await joined((await model.doStream(options)).stream, onToken)),
    async () => {
      const whole = await asking(asked, (options) => model.doGenerate(options));
      for (const part of whole.content) if (part.type === 'text') onToken(part.text);
      return whole;
    },
    asked,
  );
}

/** Some servers answer in the other form than was asked for; the answer that came is read again in that form. */
async function inEitherForm(
  wanted: () => Promise<Answered>,
  other: () => Promise<Answered>,
  asked: Asked,
): Promise<ModelAnswer> {
  const answer = await wanted().catch((error: unknown) => {
    if (error instanceof OtherForm) return other();
    throw error;
  });
  return answerIn(answer, asked);
}

/** Makes the package's call; whatever it throws becomes the failure that lies behind it. */
async function asking<T>(
  { request, form, call, guarded, server }: Asked,
  ask: (options: LanguageModelV3CallOptions) => PromiseLike<T>,
): Promise<T> {
  guarded.begin(call);
  try {
    return await ask({ ...optionsOf(request, form), abortSignal: call.signal });
  } catch (error) {
    throw failureBehind(error, call, server);
  }
}
