/** Why a run or an attempt failed, what the service does next, and what a user can do: one table for the console and the terminal. */
import type { AttemptFailureKind } from '../council/executors.js';
import type { NodeFailedData, RunFailedData } from '../generated/schemas.js';
import { isKeyOf } from '../system/element.js';

export interface FailureText {
  /** A sentence. */
  readonly what: string;
  /** A sentence: what the user can do next. */
  readonly advice: string;
}

/**
 * The text for a recorded kind of failed attempt, or null for a kind that this version does not know.
 *
 * @param fallbackTo the model that is asked next: the advice then names no fallbacks
 */
export function attemptFailureText(kind: string, fallbackTo?: string): FailureText | null {
  if (!isKeyOf(ATTEMPT_FAILURES, kind)) return null;
  const { what, advice } = ATTEMPT_FAILURES[kind];
  return { what, advice: fallbackTo === undefined ? advice : advice.replace(OR_FALLBACK, '') };
}

/** What the service does after a failed attempt: a sentence. */
export function nextActionText({
  retryable,
  fallbackTo,
  outageMs,
}: Pick<NodeFailedData, 'retryable' | 'fallbackTo' | 'outageMs'>): string {
  if (fallbackTo !== undefined) return `The service asks ${fallbackTo} instead.`;
  if (!retryable) return 'The service does not try again.';
  if (outageMs !== undefined) return `The service waits for the server for up to ${Math.round(outageMs / 1000)} s.`;
  return 'The service tries again if the node has attempts left.';
}

/** The text for the end of a run without a result. */
export function runFailureText(kind: RunFailedData['kind']): FailureText {
  return RUN_FAILURES[kind];
}

const READ_LOG = 'Read the log of the service.';
const READ_MESSAGE = 'Read the message below, then change the request or the model.';
/** The end of an advice, for nodes with and without fallbacks. */
const OR_FALLBACK = ', or add a model to the fallbacks of the node';
const NEED_FALLBACK = `If this repeats, choose another model${OR_FALLBACK}.`;
const CHECK_NETWORK = 'If this repeats, check the network between the service and the model’s server.';
const CHECK_KEY = 'Check the API key of the model in the settings of the service.';
const CHECK_ADDRESS = 'Check the address of the model in the settings of the service.';
const CHANGE_PROMPT = 'Change the topic or the prompt.';
const SHORTEN = 'Ask for a shorter text in the prompt.';
const OTHER_MODEL = 'Choose another model.';
const MORE_TIME = 'Raise the deadline of the node.';

const UNREACHABLE = { what: 'The service could not connect to the model’s server.', advice: CHECK_ADDRESS };
const OVERLOADED = { what: 'The model’s server is overloaded or out of service.', advice: NEED_FALLBACK };
const UNUSABLE = { what: 'The model’s answer was not readable.', advice: OTHER_MODEL };
const EMPTY = { what: 'The model’s answer held no text.', advice: OTHER_MODEL };

const ATTEMPT_FAILURES: Readonly<Record<AttemptFailureKind, FailureText>> = {
  bad_request: { what: 'The provider refused the request.', advice: READ_MESSAGE },
  unauthorized: { what: 'The provider did not accept the API key.', advice: CHECK_KEY },
  forbidden: { what: 'The API key may not use this model.', advice: CHECK_KEY },
  model_unknown: { what: 'The provider does not have this model.', advice: OTHER_MODEL },
  model_unusable: { what: 'The model’s name is not valid.', advice: OTHER_MODEL },
  not_configured: {
    what: 'The provider that the run named at its start is not configured.',
    advice: `Configure the provider again, or fork the run with another model${OR_FALLBACK}.`,
  },
  not_implemented: { what: 'The provider does not support this request.', advice: OTHER_MODEL },
  request_timeout: { what: 'The provider did not receive the request in time.', advice: CHECK_NETWORK },
  rate_limited: {
    what: 'The provider’s rate limit is reached.',
    advice: `If this repeats, raise the limit at the provider or lower MAX_MODEL_CALLS${OR_FALLBACK}.`,
  },
  quota_used_up: { what: 'The quota at the provider is used up.', advice: 'Raise the quota at the provider.' },
  server_error: { what: 'The model’s server failed.', advice: NEED_FALLBACK },
  http_error: { what: 'The provider answered with an error.', advice: READ_MESSAGE },
  error_answer: { what: 'The provider answered with an error.', advice: READ_MESSAGE },
  bad_gateway: OVERLOADED,
  unavailable: OVERLOADED,
  gateway_timeout: OVERLOADED,
  overloaded: OVERLOADED,
  redirected: { what: 'The model’s server sent a redirect.', advice: CHECK_ADDRESS },
  connection_refused: UNREACHABLE,
  host_unknown: UNREACHABLE,
  unreachable: UNREACHABLE,
  network_error: UNREACHABLE,
  connection_lost: { what: 'The connection to the model’s server was lost.', advice: CHECK_NETWORK },
  tls_failed: { what: 'The certificate of the model’s server is not trusted.', advice: CHECK_ADDRESS },
  timeout: { what: 'The model did not answer in time.', advice: MORE_TIME },
  aborted: { what: 'The service stopped the call.', advice: 'You need not do anything.' },
  prompt_blocked: { what: 'The provider blocked the prompt.', advice: CHANGE_PROMPT },
  safety: { what: 'The provider withheld the answer as unsafe.', advice: CHANGE_PROMPT },
  recitation: {
    what: 'The provider withheld the answer because it repeats a known text.',
    advice: 'Ask for an original text in the prompt.',
  },
  language: { what: 'The model does not support this language.', advice: 'Choose another language or model.' },
  blocklist: { what: 'The provider withheld the answer for a forbidden term.', advice: CHANGE_PROMPT },
  prohibited_content: { what: 'The provider withheld the answer as prohibited content.', advice: CHANGE_PROMPT },
  spii: {
    what: 'The provider withheld the answer because it holds personal data.',
    advice: 'Remove personal data from the topic or the prompt.',
  },
  content_filter: { what: 'A filter of the provider withheld the answer.', advice: CHANGE_PROMPT },
  refused: { what: 'The model refused to answer.', advice: CHANGE_PROMPT },
  max_tokens: {
    what: 'The answer was cut off at the limit of output tokens.',
    advice: 'Raise the maximum of output tokens of the node, or ask for a shorter text in the prompt.',
  },
  other: { what: 'The model stopped without a reason.', advice: OTHER_MODEL },
  unknown_finish: { what: 'The model stopped for a reason that the service does not know.', advice: OTHER_MODEL },
  malformed_function_call: { what: 'The model made a malformed call of a tool.', advice: OTHER_MODEL },
  answer_too_large: { what: 'The model’s answer was too large.', advice: SHORTEN },
  draft_too_large: { what: 'The draft is too large to be recorded.', advice: SHORTEN },
  feedback_too_large: { what: 'The feedback is too large to be recorded.', advice: SHORTEN },
  input_too_large: { what: 'The text is too long for the model.', advice: OTHER_MODEL },
  unreadable_answer: UNUSABLE,
  bad_vector: UNUSABLE,
  no_candidates: EMPTY,
  no_choices: EMPTY,
  no_text: EMPTY,
  empty_answer: EMPTY,
  thoughts_only: { what: 'The model’s answer held thoughts but no draft.', advice: OTHER_MODEL },
  unusable_critique: { what: 'The critic’s answer held no score with feedback.', advice: OTHER_MODEL },
  unusable_ranking: { what: 'The reviewer’s answer did not rank each response once.', advice: OTHER_MODEL },
  unusable_output: {
    what: 'The model’s answer was no JSON that is valid by the schema.',
    advice: 'Another model may write it. Or make the schema simpler.',
  },
  unusable_analysis: { what: 'The judge’s answer held no analysis.', advice: OTHER_MODEL },
  budget_exceeded: {
    what: 'The next call would pass the budget of the run.',
    advice: 'Raise the budget of the run.',
  },
  model_error: { what: 'The call to the model failed.', advice: READ_MESSAGE },
};

const RUN_FAILURES: Readonly<Record<RunFailedData['kind'], FailureText>> = {
  cancelled: {
    what: 'The run was cancelled.',
    advice: 'To continue it, fork it at the event before the cancellation.',
  },
  rejected: { what: 'The run was rejected at a pause.', advice: 'To decide otherwise, fork it at the pause.' },
  node_failed: { what: 'A node failed.', advice: 'See why its last attempt failed, then fork the run before it.' },
  no_route: {
    what: 'No edge matched the result of a node.',
    advice: 'Add an edge without a condition to the node.',
  },
  output_invalid: {
    what: 'No final output came that is valid by its schema. The draft is complete.',
    advice: 'A fork before its end, with another model or schema for the output, repeats only the format.',
  },
  draft_too_large: { what: 'A draft is too large.', advice: SHORTEN },
  execution_limit: {
    what: 'The run reached its limit of steps.',
    advice: 'Check the conditions of its loop, or raise the limit in a fork.',
  },
  budget_exceeded: {
    what: 'The run stopped at its budget.',
    advice: 'Fork it before its end with a larger budget, or start it again with one.',
  },
  takeover_limit: { what: 'Too many instances stopped while they ran it.', advice: READ_LOG },
  not_runnable: { what: 'The council cannot run.', advice: 'Correct the problems that the blueprint’s page lists.' },
  internal: { what: 'The service failed.', advice: READ_LOG },
};
