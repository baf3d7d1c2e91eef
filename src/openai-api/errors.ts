/** Errors in the form of OpenAI's API, which its clients read. */
import type { ProblemForm } from '../api/problem-form.js';
import type { ProblemAnswer } from '../api/problems.js';
import { RequestRefused } from '../api/problems.js';
import type { FieldError, OpenAiError } from '../generated/schemas.js';

/** The form of every error under /v1. */
export const OPENAI_PROBLEMS: ProblemForm = {
  prefix: '/v1',
  schema: 'openai-error.json',
  statusOf,
  answer: (problem) => ({ status: statusOf(problem.status), body: errorOf(problem), headers: problem.headers }),
};

/** The status under /v1, where broken rules of fields are 400. */
function statusOf(status: number): number {
  return status === 422 ? 400 : status;
}

/** The body of an error. */
export function errorOf({ status, body: { detail, code, errors = [] } }: ProblemAnswer): OpenAiError {
  const [first] = errors;
  return {
    error: {
      message: status === 422 && errors.length > 0 ? errors.map(sentenceOf).join('; ') : detail,
      type: typeOf(status),
      code: first?.type ?? code ?? CODES[status] ?? null,
      param: first === undefined ? null : paramOf(first),
    },
  };
}

/** Codes of errors that have no code of their own, by status. */
const CODES: Readonly<Record<number, string>> = { 401: 'invalid_api_key', 429: 'rate_limit_exceeded' };

function typeOf(status: number): OpenAiError['error']['type'] {
  if (status >= 500) return 'server_error';
  return TYPES[status] ?? 'invalid_request_error';
}

const TYPES: Readonly<Record<number, OpenAiError['error']['type']>> = {
  401: 'authentication_error',
  403: 'permission_error',
  429: 'rate_limit_error',
};

function sentenceOf(error: FieldError): string {
  const param = paramOf(error);
  return param === null ? error.msg : `${param}: ${error.msg}`;
}

/** The path of a field without the part of the request that it is in, or null for the whole part. */
function paramOf({ loc: [, ...path] }: FieldError): string | null {
  return path.length === 0 ? null : path.join('.');
}

interface About {
  readonly status?: number;
  readonly code: string;
  /** The path of the field of the body that is at fault. Default: none. */
  readonly at?: readonly (string | number)[];
  readonly headers?: Readonly<Record<string, string>>;
}

/** A refusal with OpenAI's `code` and `param`; its status is 400 unless another is given. */
export function refusal(message: string, { status = 400, code, at = [], headers = {} }: About): RequestRefused {
  return new RequestRefused(message, { status, errors: [{ loc: ['body', ...at], msg: message, type: code }], headers });
}

/** The refusal of a model that is no council. */
export function unknownModel(model: string): RequestRefused {
  const message = `The model ${quoted(model)} does not exist; GET /v1/models lists the councils`;
  return refusal(message, { status: 404, code: 'model_not_found', at: ['model'] });
}

/** Most characters of a value from a client in an error. */
const MAX_QUOTED = 100;

/** A value from a client, as JSON. */
export function quoted(value: unknown): string {
  const text = JSON.stringify(value ?? null);
  return text.length > MAX_QUOTED ? `${text.slice(0, MAX_QUOTED).toWellFormed()}…` : text;
}
