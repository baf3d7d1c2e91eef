/**
 * The base of every error that a caller may catch, and the errors that belong to no single domain. All others are in the
 * folder of their domain. `code` distinguishes them; one table, api/problems.ts, maps codes to statuses. Programming errors
 * are plain errors.
 */

/** Base of all errors: a literal `code`, a message from the constructor, the ids and values in `data`, and the `cause`. */
export abstract class CouncilError<Data extends object = object> extends Error {
  abstract readonly code: string;
  readonly data: Readonly<Data>;

  constructor(message: string, data: Data, options?: ErrorOptions) {
    super(message, options);
    this.data = data;
  }

  override get name(): string {
    return this.constructor.name;
  }
}

/** A setting holds an unusable value. The message is one line whatever the value holds. */
export class ConfigInvalid extends CouncilError<{ variable: string; value: string; accepted: string }> {
  readonly code = 'config.invalid';
  constructor(data: { variable: string; value: string; accepted: string }) {
    const shown = JSON.stringify(data.value.slice(0, 200));
    super(`Cannot use ${data.variable}=${shown}: use ${data.accepted}`, data);
  }
}

/** The service is stopping. */
export class ServiceStopping extends CouncilError {
  readonly code = 'service.stopping';
  constructor() {
    super('Cannot take new work: the service is stopping', {});
  }
}

/** A call to the model failed. `kind` says how; a retryable call may be repeated later. */
export class ModelFailed extends CouncilError<ModelFault> {
  readonly code = 'model.failed';
}

/** Recorded as `kind` of a failed attempt: a kind keeps its name. Texts and advice: `run/failure-texts.ts`. */
export type ModelFailureKind =
  // The server answered with an error status.
  | ('bad_request' | 'unauthorized' | 'forbidden' | 'model_unknown' | 'request_timeout' | 'rate_limited')
  | ('server_error' | 'not_implemented' | 'bad_gateway' | 'unavailable' | 'gateway_timeout' | 'overloaded')
  | ('http_error' | 'redirected' | 'quota_used_up' | 'prompt_blocked' | 'input_too_large')
  // The connection failed, or no answer came in time.
  | ('connection_refused' | 'connection_lost' | 'host_unknown' | 'unreachable' | 'tls_failed' | 'network_error')
  | ('timeout' | 'aborted')
  // The answer is unusable.
  | ('answer_too_large' | 'unreadable_answer' | 'error_answer' | 'no_candidates' | 'no_choices' | 'no_text')
  | ('empty_answer' | 'thoughts_only' | 'bad_vector')
  // The model stopped early or withheld its answer: names of Gemini and OpenAI.
  | ('max_tokens' | 'safety' | 'recitation' | 'language' | 'other' | 'blocklist' | 'prohibited_content' | 'spii')
  | ('malformed_function_call' | 'content_filter' | 'refused' | 'unknown_finish')
  // The call was not sent.
  | ('model_unusable' | 'not_configured');

export interface ModelFault {
  readonly kind: ModelFailureKind;
  readonly retryable: boolean;
  /** How long the provider asked to wait, in milliseconds. */
  readonly retryAfterMs?: number;
  /** How long the next attempts wait for the model's server, which is unreachable, in milliseconds. */
  readonly outageMs?: number;
  /** The tokens that the failed call used, if the provider reported them. */
  readonly usage?: ModelUsage;
  /** Whether no request has arrived at a server. Absent: the kind says so (`models/billing.ts`). */
  readonly isUnsent?: boolean;
}

/** What a call cost: numbers, or null where the provider reports none. An absent count is unknown too. */
export interface ModelUsage {
  /** Tokens of the prompt, cached ones included. */
  readonly inputTokens: number | null;
  /** Of these, tokens that were read from the provider's cache. */
  readonly cachedInputTokens?: number | null;
  /** Of these, tokens that were written to it. */
  readonly cacheWriteTokens?: number | null;
  /** Of these, tokens that were written for an hour. Not recorded: the cost holds them. */
  readonly cacheWriteHourTokens?: number | null;
  /** Tokens of the answer, reasoning included. */
  readonly outputTokens: number | null;
  /** Of these, tokens of reasoning. */
  readonly reasoningTokens?: number | null;
  /** US dollars as the provider reports them; absent if it reports none. */
  readonly costUsd?: number;
}
