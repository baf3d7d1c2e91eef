/** Gemini's generateContent. */
import { fieldOf, isRecord, listOf } from '../../system/untrusted.js';
import type { ModelUsage } from '../port.js';
import { MAX_CALLS } from '../port.js';
import { modelFailed } from '../failed-exchange.js';
import { redactName } from '../redaction.js';
import { errorInAnswer, partsIn, unusable } from '../unusable-answer.js';
import type { ReportedUsage } from '../usage.js';
import { count, sumOf, withReport } from '../usage.js';
import type { ServerCall } from '../server-call.js';
import type { Wire, WireOptions, WireReader } from './wire.js';

export async function geminiWire({ baseUrl, apiKey }: WireOptions): Promise<Wire> {
  const { createGoogleGenerativeAI } = await import('@ai-sdk/google');
  return {
    // The package insists on a key; `headers` replaces what it sends.
    headers: { 'x-goog-api-key': apiKey },
    model: (name, { fetch }) => createGoogleGenerativeAI({ baseURL: baseUrl, apiKey: 'none', fetch })(usableName(name)),
    reader: readerOf,
  };
}

function readerOf(call: ServerCall): WireReader {
  let reported: ReportedUsage = {};
  let calls = 0;
  /** Whether a part is one that the package reads, and no call after the last that counts. */
  const isRead = (part: unknown): boolean => {
    if (typeof fieldOf(part, 'text') === 'string') return true;
    if (typeof fieldOf(fieldOf(part, 'functionCall'), 'name') !== 'string') return false;
    calls += 1;
    return calls <= MAX_CALLS;
  };
  const read = (body: unknown): { readonly candidates: readonly object[] } => {
    reported = withReport(reported, fieldOf(body, 'usageMetadata'), REPORTED);
    if (fieldOf(body, 'error') !== undefined) throw errorInAnswer(body, call);
    const reason = fieldOf(fieldOf(body, 'promptFeedback'), 'blockReason');
    if (isSet(reason) && finishIn(body) === undefined)
      throw unusable(call, `the prompt was blocked (${redactName(reason, call.hidden)})`, 'prompt_blocked');
    return { candidates: candidatesOf(body, (parts) => partsIn(parts, call).filter(isRead)) };
  };
  return {
    whole(body) {
      const answer = read(body);
      if (answer.candidates.length === 0) throw unusable(call, 'it holds no candidate', 'no_candidates');
      return answer;
    },
    event: (event) => (event === null ? null : read(event)),
    isEnd: (event) => isSet(finishIn(event)),
    usage: () => usageOf(reported),
  };
}

/** The first candidate in the form that the package reads: it refuses the whole answer for a part that it does not know. */
function candidatesOf(answer: unknown, read: (parts: unknown) => readonly unknown[]): readonly object[] {
  return listOf(fieldOf(answer, 'candidates'))
    .slice(0, 1)
    .filter(isRecord)
    .map((candidate) => ({
      content: { parts: read(fieldOf(candidate['content'], 'parts')) },
      finishReason: isSet(candidate['finishReason']) ? candidate['finishReason'] : undefined,
    }));
}

/** The fields of `usageMetadata` that are read. */
const REPORTED = [
  ...['promptTokenCount', 'candidatesTokenCount', 'thoughtsTokenCount', 'toolUsePromptTokenCount'],
  ...['cachedContentTokenCount'],
];

function finishIn(answer: unknown): unknown {
  return fieldOf(listOf(fieldOf(answer, 'candidates'))[0], 'finishReason');
}

function isSet(value: unknown): value is string {
  return typeof value === 'string' && !/^(?:BLOCK(?:ED)?_REASON_UNSPECIFIED)?$/.test(value);
}

/** Whether a text is a model name and nothing else: it becomes part of the address. */
export function isUsableName(text: string): boolean {
  return /^(?:(?:models|tunedModels)\/)?[A-Za-z0-9][\w.-]{0,127}$/.test(text);
}

/** What `isUsableName` accepts, in words. */
export const USABLE_NAMES = 'a name of letters, digits, "-", "_" and "."';

function usableName(name: string): string {
  if (isUsableName(name)) return name;
  const shown = JSON.stringify(name.slice(0, 128));
  throw modelFailed(`Cannot ask model ${shown}: wanted is ${USABLE_NAMES}`, 'model_unusable');
}

/** Thoughts are counted beside the candidates, and billed as output. */
function usageOf(raw: ReportedUsage): ModelUsage {
  const candidates = count(raw, 'candidatesTokenCount');
  const reasoningTokens = count(raw, 'thoughtsTokenCount');
  const prompt = count(raw, 'promptTokenCount');
  return {
    inputTokens: prompt === null ? null : sumOf(prompt, count(raw, 'toolUsePromptTokenCount') ?? 0),
    cachedInputTokens: count(raw, 'cachedContentTokenCount'),
    cacheWriteTokens: null,
    outputTokens: candidates === null && reasoningTokens === null ? null : sumOf(candidates ?? 0, reasoningTokens ?? 0),
    reasoningTokens,
  };
}
