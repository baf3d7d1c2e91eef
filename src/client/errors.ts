/** Why a call failed: one class for each failure that a program may want to catch. */
import type { FieldError, Problem } from '../generated/schemas.js';

/** The kind of a failure, where its status leaves it open: GET /api/openapi.json describes each at `Problem`. */
export type ProblemCode = NonNullable<Problem['code']>;

/** A failed answer, as far as it is known. */
export interface Refusal {
  /** Status of the answer; null: none came. */
  readonly status: number | null;
  /** The kind of the failure. Default: the service gives none. */
  readonly code?: ProblemCode | null;
  /** The rules that were broken, of a 422. Default: none. */
  readonly errors?: readonly FieldError[];
  /** How long the service asks to wait before another try, in seconds. Default: it does not say. */
  readonly retryAfter?: number | null;
  readonly cause?: unknown;
}

/** Base of all errors of this client. The message is the service's `detail`, where it gave one. */
export class CouncilError extends Error {
  override readonly name: string = 'CouncilError';
  /** Status of the answer; null: none came. */
  readonly status: number | null;
  readonly detail: string;
  /** The kind of the failure, or null if the service gives none. */
  readonly code: ProblemCode | null;
  /** The rules that were broken, of a 422. */
  readonly errors: readonly FieldError[];
  /** How long the service asks to wait before another try, in seconds; null: it does not say. */
  readonly retryAfter: number | null;

  constructor(detail: string, { status, code = null, errors = [], retryAfter = null, cause }: Refusal) {
    super(detail, cause === undefined ? {} : { cause });
    this.status = status;
    this.detail = detail;
    this.code = code;
    this.errors = errors;
    this.retryAfter = retryAfter;
  }
}

/** 400: the request does not fit the present state. */
export class BadRequestError extends CouncilError {
  override readonly name: string = 'BadRequestError';
}

/** 401: no key, or one that is unknown, revoked or expired. */
export class UnauthorizedError extends CouncilError {
  override readonly name: string = 'UnauthorizedError';
}

/** 403: the key lacks the scope, or its holder is no approver of this pause. */
export class ForbiddenError extends CouncilError {
  override readonly name: string = 'ForbiddenError';
}

/** 404 or 410: there is no such run, blueprint or document. */
export class NotFoundError extends CouncilError {
  override readonly name: string = 'NotFoundError';
}

/** 409: what the request is about is in another state: a run has ended, an id is taken. */
export class ConflictError extends CouncilError {
  override readonly name: string = 'ConflictError';
}

/** 409, or 400 "not paused": the run no longer waits at this pause. Nothing was decided. */
export class StalePauseError extends CouncilError {
  override readonly name: string = 'StalePauseError';
}

/** 412: it was changed since the `ETag` that was sent as `ifMatch`. */
export class PreconditionFailedError extends CouncilError {
  override readonly name: string = 'PreconditionFailedError';
}

/** 413: more than the service takes. */
export class TooLargeError extends CouncilError {
  override readonly name: string = 'TooLargeError';
}

/** 422: a field breaks a rule; `errors` says which. */
export class InvalidError extends CouncilError {
  override readonly name: string = 'InvalidError';
}

/** 429: too many requests; `retryAfter` says for how long. */
export class TooManyRequestsError extends CouncilError {
  override readonly name: string = 'TooManyRequestsError';
}

/** 500 and other faults of the service. */
export class ServerError extends CouncilError {
  override readonly name: string = 'ServerError';
}

/** 502, 503 or 504: the service is about to stop, overloaded, or cannot reach its log. */
export class UnavailableError extends CouncilError {
  override readonly name: string = 'UnavailableError';
}

/** No answer came, or not all of it. */
export class UnreachableError extends CouncilError {
  override readonly name: string = 'UnreachableError';

  /** @param url of the service @param cause as fetch throws it */
  constructor(url: string, cause?: unknown) {
    super(`Cannot reach the service at ${url}: is it running?`, { status: null, cause });
  }
}

/** The server is no council service, or a version that this client does not understand. */
export class UnexpectedAnswerError extends CouncilError {
  override readonly name: string = 'UnexpectedAnswerError';
}

const BY_STATUS: Readonly<Record<number, typeof CouncilError>> = {
  400: BadRequestError,
  401: UnauthorizedError,
  403: ForbiddenError,
  404: NotFoundError,
  409: ConflictError,
  410: NotFoundError,
  412: PreconditionFailedError,
  413: TooLargeError,
  422: InvalidError,
  429: TooManyRequestsError,
  502: UnavailableError,
  503: UnavailableError,
  504: UnavailableError,
};

/** The error for an answer that is no 2xx. */
export function refusalOf(detail: string, refusal: Refusal & { readonly status: number }): CouncilError {
  const Refused = BY_STATUS[refusal.status] ?? (refusal.status >= 500 ? ServerError : CouncilError);
  return new Refused(detail, refusal);
}
