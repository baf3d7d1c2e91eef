/** Requests vectors over HTTP, the same for every provider: with deadline, retries, classified failures and small batches. */
import { elementAt } from '../system/element.js';
import type { System } from '../system/system.js';
import { fieldOf, isList } from '../system/untrusted.js';
import { ModelFailed } from '../errors.js';
import { callAborted } from '../models/port.js';
import type { FaultKind } from '../models/failed-exchange.js';
import { isModelUnknown, kindOfStatus, errorMessageOf } from '../models/failed-exchange.js';
import type { ModelServer } from '../models/exchange.js';
import { exchange, isKeyRefused, jsonIn } from '../models/exchange.js';
import { inTime } from '../system/async/deadline.js';
import { providerWaitMs, retry } from '../system/async/retry.js';
import type { EmbeddingOptions, Embeddings } from './port.js';
import { normalised } from './port.js';

/** The model and the names of its settings, for messages. */
export interface EmbeddingSource {
  readonly model: string;
  readonly settings: { readonly key: string; readonly model: string; readonly baseUrl: string };
}

export interface EmbeddingCall {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: object;
  readonly source: EmbeddingSource;
  /** Texts that no message may contain: the key and the texts. */
  readonly hidden: readonly string[];
}

export interface EmbeddingLimits {
  /** Of one request, in milliseconds. */
  readonly timeoutMs: number;
  /** Requests until the call fails. */
  readonly maxAttempts: number;
}

export const EMBEDDING_LIMITS: EmbeddingLimits = { timeoutMs: 60_000, maxAttempts: 5 };

export interface EmbeddingDeps {
  readonly limits: EmbeddingLimits;
  readonly system: Pick<System, 'after' | 'now' | 'random'>;
}

/**
 * The server's answer, parsed by `read`. Retryable failures are retried after a wait that doubles, with full jitter, and is
 * at least as long as the server asks for. Redirects are not followed, because they would receive the key.
 *
 * @throws {ModelFailed} of the last attempt, or `aborted` by the signal
 */
export async function requestVectors<T>(
  call: EmbeddingCall,
  { signal, read }: { readonly signal: AbortSignal; readonly read: (answer: unknown) => T },
  { limits, system }: EmbeddingDeps,
): Promise<T> {
  try {
    const waitMs = (error: unknown, failures: number): number | null => {
      const isFinal = !(error instanceof ModelFailed) || !error.data.retryable || failures >= limits.maxAttempts;
      return isFinal ? null : providerWaitMs(failures, error.data.retryAfterMs, system.random());
    };
    const act = async (): Promise<T> => read(await exchanged(call, signal, { limits, system }));
    return await retry(act, waitMs, { system, signal });
  } catch (error) {
    throw signal.aborted ? callAborted(signal) : error;
  }
}

/** The vector of a server's numbers, scaled to length 1. @throws {ModelFailed} `bad_vector` */
export function vectorIn(values: unknown, dimensions: number, source: EmbeddingSource): Float32Array {
  if (!isList(values) || values.length !== dimensions) {
    const fault = isList(values)
      ? `a vector has ${values.length} dimensions, not ${dimensions}`
      : 'a vector is missing';
    const why = `${fault} (check ${source.settings.model})`;
    throw failure(source, why, { kind: 'bad_vector', retryable: false });
  }
  const vector = values.every((each) => typeof each === 'number') ? normalised(values) : null;
  if (vector !== null) return vector;
  const why = 'a vector of the answer is zero or holds values that are not finite numbers';
  throw failure(source, why, { kind: 'bad_vector', retryable: false });
}

/** The list of an answer, with one entry per text. @throws {ModelFailed} `unreadable_answer` */
export function listIn(answer: unknown, name: string, count: number, source: EmbeddingSource): readonly unknown[] {
  const list = fieldOf(answer, name);
  if (isList(list) && list.length === count) return list;
  const found = isList(list) ? `${list.length} vectors` : 'no list of vectors';
  throw failure(source, `the answer holds ${found}, expected ${count}`, UNREADABLE);
}

export function failure(source: EmbeddingSource, why: string, fault: FaultKind): ModelFailed {
  return new ModelFailed(`${purposeOf(source)}: ${why}`, fault);
}

/** The next answer may be readable. */
export const UNREADABLE: FaultKind = { kind: 'unreadable_answer', retryable: true };

/** Settles by the deadline, even if the server sends its answer byte by byte. */
async function exchanged(
  { source, ...call }: EmbeddingCall,
  signal: AbortSignal,
  { limits, system }: EmbeddingDeps,
): Promise<unknown> {
  const late = (): ModelFailed =>
    failure(source, `no answer within ${limits.timeoutMs} ms`, { kind: 'timeout', retryable: true });
  return await inTime(
    (own) => exchange({ ...call, server: serverOf(source), signal: own, now: system.now }, { read: jsonIn }),
    { system, maxMs: limits.timeoutMs, signal, late },
  );
}

function serverOf(source: EmbeddingSource): ModelServer {
  const { key, model, baseUrl } = source.settings;
  const hints = new Map([
    ['unauthorized', `check ${key}`],
    ['forbidden', `check ${key}`],
    ['model_unknown', `check ${model} and ${baseUrl}`],
    ['not_implemented', `check ${model}`],
  ]);
  return { purpose: purposeOf(source), addressSetting: baseUrl, kindOf, hints };
}

function purposeOf({ model }: EmbeddingSource): string {
  return `Cannot get vectors of model "${model}"`;
}

/** Whatever the status, permanent failures are not retried: llama.cpp answers 500 to an input past its batch. */
function kindOf(status: number, body: unknown): FaultKind {
  const message = errorMessageOf(body);
  if (isKeyRefused(body)) return { kind: 'unauthorized', retryable: false };
  if (status === 413 || (INPUT_STATUSES.has(status) && TOO_LARGE.test(message))) {
    return { kind: 'input_too_large', retryable: false };
  }
  if (isModelUnknown(status, message)) return { kind: 'model_unknown', retryable: false };
  return kindOfStatus(status);
}

/** Statuses of a request that is too large: 500 is llama.cpp's. */
const INPUT_STATUSES: ReadonlySet<number> = new Set([400, 422, 500]);

/** The messages of llama.cpp, OpenAI, vLLM, Ollama, TEI and Gemini. None of them sends a code. */
const TOO_LARGE =
  /\b(?:too (?:large|long)|(?:larger|longer) than)\b|\bexceed(?:s|ed)?\b.{0,80}\b(?:length|limit|maximum|context|size)\b|\bmaximum (?:context|allowed)\b|\bmust have less than\b|\bbatch size\b|\btoo many (?:inputs|tokens|texts)\b/is;

type Embed = Embeddings['embed'];

/**
 * Embeds texts on a server that accepts less at once: splits batches, and embeds a text that is too large alone in parts,
 * whose vectors it averages, weighted by length. The chunk that is found and cited stays complete. Remembers the accepted
 * length.
 *
 * @throws {ModelFailed} `input_too_large` if the server refuses even `SHORTEST_UNITS`
 */
export function splittingToFit(embed: Embed): Embed {
  let longestUnits = Number.POSITIVE_INFINITY;

  async function embedAll(texts: readonly string[], options: EmbeddingOptions): Promise<readonly Float32Array[]> {
    const parts = texts.map((text) => partsOf(text, longestUnits));
    const vectors = await embedParts(parts.flat(), options);
    let from = 0;
    return parts.map((each) => {
      const own = vectors.slice(from, (from += each.length));
      return meanOf(own, each);
    });
  }

  async function embedParts(texts: readonly string[], options: EmbeddingOptions): Promise<readonly Float32Array[]> {
    try {
      return await embed(texts, options);
    } catch (error) {
      if (!(error instanceof ModelFailed) || error.data.kind !== 'input_too_large') throw error;
      const half = Math.ceil(texts.length / 2);
      if (texts.length > 1) {
        return [...(await embedAll(texts.slice(0, half), options)), ...(await embedAll(texts.slice(half), options))];
      }
      const units = elementAt(texts, 0).length;
      if (units < 2 * SHORTEST_UNITS) throw error;
      longestUnits = Math.min(longestUnits, Math.ceil(units / 2));
      return await embedAll(texts, options);
    }
  }

  return embedAll;
}

/** Cuts after a space where possible. */
function partsOf(text: string, longestUnits: number): readonly string[] {
  const parts: string[] = [];
  let rest = text;
  while (rest.length > longestUnits) {
    const at = cutOf(rest, longestUnits);
    parts.push(rest.slice(0, at));
    rest = rest.slice(at);
  }
  return [...parts, rest];
}

function cutOf(text: string, longestUnits: number): number {
  const space = text.lastIndexOf(' ', longestUnits - 1) + 1;
  if (space > longestUnits / 2) return space;
  const unit = text.charCodeAt(longestUnits);
  const isWithinPair = unit >= 0xdc00 && unit <= 0xdfff;
  return isWithinPair ? longestUnits - 1 : longestUnits;
}

/** The weighted mean. Vectors that cancel each other out have none: then the first vector. */
function meanOf(vectors: readonly Float32Array[], texts: readonly string[]): Float32Array {
  const first = elementAt(vectors, 0);
  if (vectors.length === 1) return first;
  const sum = new Float64Array(first.length);
  vectors.forEach((vector, index) => {
    const weight = elementAt(texts, index).length;
    vector.forEach((value, at) => (sum[at] = (sum[at] ?? 0) + weight * value));
  });
  return normalised(sum) ?? first;
}

/** Shortest part, in UTF-16 units: a server that accepts less is misconfigured. */
const SHORTEST_UNITS = 100;
