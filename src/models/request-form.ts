/** Asks in the form that a server accepts: which form of a request to try after another has failed. */
import type { SharedV3Warning } from '@ai-sdk/provider';
import type { ModelFailureKind } from '../errors.js';
import { ModelFailed } from '../errors.js';
import { settleRequest } from './billing.js';
import type { ModelAnswer, ModelRequest } from './port.js';
import { holdsReasoning } from './sdk-request.js';
import { ServerRefused } from './server-call.js';
import type { RequestForm } from './wires/wire.js';
import { FIRST_FORM } from './wires/wire.js';

interface FormsOfModel {
  readonly name: string;
  /** The forms that servers accept, by the names of their models. */
  readonly forms: Map<string, RequestForm>;
  readonly signal: AbortSignal;
}

/** Asks a model in one form after the other, until an answer comes or no other form may help. Remembers the accepted form. */
export async function askInForms(
  request: ModelRequest,
  { name, forms, signal }: FormsOfModel,
  ask: (form: RequestForm) => Promise<ModelAnswer>,
): Promise<ModelAnswer> {
  let form = forms.get(name) ?? FIRST_FORM;
  let isLasting = form !== FIRST_FORM;
  for (;;) {
    try {
      const answer = await ask(form);
      // Whether a server accepts a schema depends on the schema.
      if (isLasting && request.answer !== 'output') forms.set(name, form);
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

/**
 * The form to try after a refusal, or null if there is nothing left to change. What the message names goes first;
 * refusals of JSON often name nothing. llama.cpp refuses a message that its template does not know with 500.
 */
function changedForm(form: RequestForm, request: ModelRequest, refusal: ServerRefused): RequestForm | null {
  const isBadRequest = refusal.status === 400 || refusal.status === 422;
  if ((!isBadRequest && refusal.status !== 500) || NOT_OF_FORM.has(refusal.meant)) return null;
  return namedChange(form, request, refusal.said) ?? (isBadRequest ? nextChange(form, request) : null);
}

/** Refusals that no other form avoids. */
const NOT_OF_FORM: ReadonlySet<ModelFailureKind> = new Set<ModelFailureKind>([
  ...(['model_unknown', 'prompt_blocked', 'quota_used_up', 'unauthorized'] as const),
]);

/** Changes that a message may name, in the order they are tried. */
const NAMED: readonly NamedChange[] = [
  {
    words: /max_completion_tokens/,
    applies: (form, request) => request.maxOutputTokens !== undefined && form.limit === 'max_tokens',
    change: { limit: 'max_completion_tokens' },
  },
  {
    words: /\btemperature\b/i,
    applies: (form, request) => request.temperature !== undefined && form.temperature,
    change: { temperature: false },
  },
  {
    words: /\breasoning_(?:content|details)\b/,
    applies: (form, { rounds = [] }) => form.reasoning && rounds.some(({ turn }) => holdsReasoning(turn)),
    change: { reasoning: false },
  },
  {
    words:
      /\b(?:system|developer)[ -]?(?:role|message|instruction|prompt)\b|\brole\W{1,3}system|\broles must alternate\b|\bonly user\b.{0,30}\broles?\b/i,
    applies: (form) => form.systemRole,
    change: { systemRole: false },
  },
  {
    words: /stream_options|include_usage/,
    applies: (form, request) => request.onToken !== undefined && form.usageInStream,
    change: { usageInStream: false },
  },
];

interface NamedChange {
  readonly words: RegExp;
  readonly applies: (form: RequestForm, request: ModelRequest) => boolean;
  readonly change: Partial<RequestForm>;
}

function namedChange(form: RequestForm, request: ModelRequest, said: string): RequestForm | null {
  const named = NAMED.find(({ words, applies }) => words.test(said) && applies(form, request));
  return named === undefined ? null : { ...form, ...named.change };
}

function nextChange(form: RequestForm, request: ModelRequest): RequestForm | null {
  if (request.onToken !== undefined && form.streams) return { ...form, streams: false };
  if (request.answer === 'draft' || form.json === 'prompt') return null;
  if ((request.tools ?? []).length > 0) {
    return form.schemaBesideTools && form.json === 'schema' ? { ...form, schemaBesideTools: false } : null;
  }
  return { ...form, json: form.json === 'schema' ? 'object' : 'prompt' };
}

/**
 * What of a request was left out, for the record: what the server refused, and what the package knows that it refuses.
 *
 * @param warnings of the package
 */
export function droppedFrom(
  { temperature }: ModelRequest,
  form: RequestForm,
  warnings: readonly SharedV3Warning[],
): readonly string[] {
  const isUnsupported = warnings.some((each) => each.type === 'unsupported' && each.feature === 'temperature');
  return [
    ...(temperature !== undefined && (isUnsupported || !form.temperature) ? ['temperature'] : []),
    ...(form.systemRole ? [] : ['system_role']),
  ];
}
