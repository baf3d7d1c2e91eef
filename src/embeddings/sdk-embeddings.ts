/** Embeddings of a provider, by its package. */
import type { EmbeddingModelV3 } from '@ai-sdk/provider';
import type { ProxySettings } from '../config-values.js';
import type { ProviderSettings } from '../config-providers.js';
import type { ModelFailureKind } from '../errors.js';
import { ModelFailed } from '../errors.js';
import { errorMessageOf, kindOfRefusal, modelFailed } from '../models/failed-exchange.js';
import type { AnswerReader, ServerCall } from '../models/server-call.js';
import { hintsOf } from '../models/server-call.js';
import { failureBehind, guardedFetch } from '../models/guarded-fetch.js';
import { callAborted } from '../models/port.js';
import type { ProviderApi } from '../models/wires/wires.js';
import { WIRES } from '../models/wires/wires.js';
import { modelTransport } from '../models/transport.js';
import { inTime, providerWaitMs, retry } from '../system/async/deadline.js';
import type { System } from '../system/system.js';
import { fieldOf, isList, listOf } from '../system/untrusted.js';
import { splittingToFit } from './splitting-to-fit.js';
import type { EmbeddingOptions, Embeddings, TextKind } from './port.js';
import { DIMENSIONS, inBatches, normalised } from './port.js';

export interface EmbeddingLimits {
  /** Of one request, in milliseconds. */
  readonly timeoutMs: number;
  /** Requests until the call fails. */
  readonly maxAttempts: number;
}

const EMBEDDING_LIMITS: EmbeddingLimits = { timeoutMs: 60_000, maxAttempts: 5 };

export interface EmbeddingDeps {
  readonly limits?: EmbeddingLimits;
  readonly proxies: ProxySettings;
  readonly system: Pick<System, 'after' | 'now' | 'random'>;
}

/** What the APIs differ in. */
interface EmbeddingApi {
  /** The package's model. */
  readonly model: (settings: ProviderSettings, fetch: typeof globalThis.fetch) => Promise<EmbeddingModelV3>;
  /** Most texts of one request: a limit of Gemini's API, and a low default of local servers. */
  readonly textsAtOnce: number;
  readonly options: (kind: TextKind) => NonNullable<Parameters<EmbeddingModelV3['doEmbed']>[0]['providerOptions']>;
  /** The vectors of an answer, as they came. */
  readonly vectorsIn: (body: unknown) => readonly unknown[];
}

/** The APIs that have embeddings. */
const APIS: Readonly<Partial<Record<ProviderApi, EmbeddingApi>>> = {
  openai: {
    async model({ baseUrl, model }, fetch) {
      const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible');
      return createOpenAICompatible({ name: 'compatible', baseURL: baseUrl, fetch }).embeddingModel(model);
    },
    textsAtOnce: 64,
    options: () => ({ openaiCompatible: { dimensions: DIMENSIONS } }),
    vectorsIn: (body) => inOrder(listOf(fieldOf(body, 'data'))).map((each) => fieldOf(each, 'embedding')),
  },
  gemini: {
    async model({ baseUrl, model }, fetch) {
      const { createGoogleGenerativeAI } = await import('@ai-sdk/google');
      return createGoogleGenerativeAI({ baseURL: baseUrl, apiKey: 'none', fetch }).embeddingModel(
        model.replace(/^models\//, ''),
      );
    },
    textsAtOnce: 100,
    options: (kind) => ({
      google: {
        outputDimensionality: DIMENSIONS,
        taskType: kind === 'query' ? 'RETRIEVAL_QUERY' : 'RETRIEVAL_DOCUMENT',
      },
    }),
    vectorsIn(body) {
      const one = fieldOf(body, 'embedding');
      return (one === undefined ? listOf(fieldOf(body, 'embeddings')) : [one]).map((each) => fieldOf(each, 'values'));
    },
  },
};

/** By `index`, which overrides the order of the list. */
function inOrder(entries: readonly unknown[]): readonly unknown[] {
  const byIndex = new Map(entries.toReversed().map((each) => [fieldOf(each, 'index'), each]));
  return entries.map((entry, at) => byIndex.get(at) ?? entry);
}

/**
 * 768 dimensions are asked for; another number is a failure, `bad_vector`. Gemini cuts them off the model's 3,072, so that
 * they are no longer of length 1 (ai.google.dev/gemini-api/docs/embeddings): they are normalised here. Retryable failures
 * are retried after a wait that doubles, with full jitter, and is never shorter than the server asks for. Requests go one
 * after the other.
 */
export async function providerEmbeddings(settings: ProviderSettings, deps: EmbeddingDeps): Promise<Embeddings> {
  const { limits = EMBEDDING_LIMITS, proxies, system } = deps;
  const transport = modelTransport(proxies);
  const found = APIS[settings.api];
  if (found === undefined)
    throw new TypeError(`Cannot embed texts by provider "${settings.name}": its API has no embeddings`);
  const api: EmbeddingApi = found;
  const { headers } = await WIRES[settings.api](settings);
  const { model: modelSetting, baseUrl: addressSetting } = settings.settings;
  const server = { headers, addressSetting, hints: hintsOf(settings.settings), kindOf };
  const purpose = `Cannot get vectors of model "${settings.model}"`;

  async function request(
    texts: readonly string[],
    { kind, signal }: EmbeddingOptions,
  ): Promise<readonly Float32Array[]> {
    const { now } = system;
    const call: ServerCall = { purpose, hidden: { key: settings.apiKey, texts }, signal, now, rounds: 0 };
    let vectors: readonly Float32Array[] = [];
    const reader = readerOf((body) => {
      const came = api.vectorsIn(body);
      if (came.length !== texts.length) {
        const why = `${texts.length} vectors were requested, ${came.length} came`;
        throw modelFailed(`${purpose}: ${why}`, 'unreadable_answer');
      }
      vectors = came.map((each) => vectorIn(each, { purpose, modelSetting }));
    });
    try {
      const model = await api.model(settings, guardedFetch(call, { server, reader, transport, system }));
      await model.doEmbed({ values: [...texts], abortSignal: signal, providerOptions: api.options(kind) });
      return vectors;
    } catch (error) {
      throw failureBehind(error, call, server);
    }
  }

  const embedAll = async (
    texts: readonly string[],
    { kind, signal }: EmbeddingOptions,
  ): Promise<readonly Float32Array[]> => {
    const late = (): ModelFailed => modelFailed(`${purpose}: none came within ${limits.timeoutMs} ms`, 'timeout');
    const act = (): Promise<readonly Float32Array[]> =>
      inTime((call) => request(texts, { kind, signal: call.signal }), {
        system,
        maxMs: limits.timeoutMs,
        signal,
        late,
      });
    const waitMs = (error: unknown, failures: number): number | null => {
      const isFinal = !(error instanceof ModelFailed) || !error.data.retryable || failures >= limits.maxAttempts;
      return isFinal ? null : providerWaitMs(failures, error.data.retryAfterMs, system.random());
    };
    try {
      return await retry(act, waitMs, { system, signal });
    } catch (error) {
      throw signal.aborted ? callAborted(signal) : error;
    }
  };
  return { model: settings.model, dimensions: DIMENSIONS, embed: inBatches(api.textsAtOnce, splittingToFit(embedAll)) };
}

/** Reads an answer before the package does: it would refuse a wrong vector without a reason. */
function readerOf(read: (body: unknown) => void): AnswerReader {
  return {
    maxChars: MAX_CHARS,
    whole(body) {
      read(body);
      return UNUSED;
    },
    event: (event) => event,
    isEnd: () => false,
  };
}

/** Longest answer in UTF-16 units: 100 vectors of 3,072 numbers are 6 Mi. */
const MAX_CHARS = 8 * 1024 * 1024;

/** What the packages get in place of an answer: they would check all numbers again, and what they return is not used. */
const UNUSED = { data: [], embedding: { values: [] }, embeddings: [] };

/** The vector of length 1 that a server's numbers make. @throws {ModelFailed} `bad_vector` */
function vectorIn(
  values: unknown,
  { purpose, modelSetting }: Readonly<Record<'purpose' | 'modelSetting', string>>,
): Float32Array {
  const refuse = (why: string): never => {
    throw modelFailed(`${purpose}: ${why}`, 'bad_vector');
  };
  if (!isList(values) || values.length !== DIMENSIONS) {
    const why = isList(values)
      ? `a vector has ${values.length} dimensions, not ${DIMENSIONS}`
      : `a vector of ${DIMENSIONS} dimensions is missing`;
    return refuse(`${why} (check ${modelSetting})`);
  }
  const vector = values.every((each) => typeof each === 'number') ? normalised(values) : null;
  return vector ?? refuse('a vector of its answer is zero, or holds something else than numbers');
}

/** Permanent failures are not retried, whatever the status: llama.cpp answers 500 to an input past its batch. */
function kindOf(status: number, body: unknown): ModelFailureKind {
  const isTooLarge = INPUT_STATUSES.has(status) && TOO_LARGE.test(errorMessageOf(body));
  if (status === 413 || isTooLarge) return 'input_too_large';
  return kindOfRefusal(status, body);
}

/** Statuses of a request that is too large: 500 is llama.cpp's. */
const INPUT_STATUSES: ReadonlySet<number> = new Set([400, 422, 500]);

/** As worded by llama.cpp, OpenAI, vLLM, Ollama, TEI and Gemini. */
const TOO_LARGE =
  /\b(?:too (?:large|long)|(?:larger|longer) than)\b|\bexceed(?:s|ed)?\b.{0,80}\b(?:length|limit|maximum|context|size)\b|\bmaximum (?:context|allowed)\b|\bmust have less than\b|\bbatch size\b|\btoo many (?:inputs|tokens|texts)\b/is;
