/** The errors of this client: a class for each failure that a program may catch. */
import type { FieldError, Problem } from '../generated/schemas.js';

/** The kind of a failure, if its status has several. GET /api/openapi.json describes each at `Problem`. */
export type ProblemCode = NonNullable<Problem['code']>;

/** The fields of a CouncilError. Those that are absent are null or empty. */
export interface Refusal extends Partial<Pick<CouncilError, 'code' | 'errors' | 'retryAfter'>> {
  readonly status: number | null;
  readonly cause?: unknown;
}

/** Base of all errors of this client. */
export class CouncilError extends Error {
  override readonly name: string = 'CouncilError';
  /** HTTP status, or null without an answer. */
  readonly status: number | null;
  /** The explanation of the service, or of this client without an answer. Also the message. */
  readonly detail: string;
  /** The kind of the failure, or null if the service gives none. */
  readonly code: ProblemCode | null;
  /** The broken rules of a 422, otherwise empty. */
  readonly errors: readonly FieldError[];
  /** Seconds to wait before the next attempt, or null if the service names none. */
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

/** 400: the request does not fit the state of the run. */
export class BadRequestError extends CouncilError {
  override readonly name: string = 'BadRequestError';
}

/** 401: no key, or one that is unknown, revoked or expired. */
export class UnauthorizedError extends CouncilError {
  override readonly name: string = 'UnauthorizedError';
}

/** 403: the key lacks the scope, or is no approver of the pause. */
export class ForbiddenError extends CouncilError {
  override readonly name: string = 'ForbiddenError';
}

/** 404 or 410: there is no such run, blueprint, document or key. */
export class NotFoundError extends CouncilError {
  override readonly name: string = 'NotFoundError';
}

/** 409: a conflict with the state, for example the run has ended or the id is taken. */
export class ConflictError extends CouncilError {
  override readonly name: string = 'ConflictError';
}

/** 409, or 400 "not paused": the run no longer waits at this pause, so the decision has no effect. */
export class StalePauseError extends CouncilError {
  override readonly name: string = 'StalePauseError';
}

/** 412: the blueprint has changed since the version in `ifMatch`. */
export class PreconditionFailedError extends CouncilError {
  override readonly name: string = 'PreconditionFailedError';
}

/** 413: the request is larger than the service accepts. */
export class TooLargeError extends CouncilError {
  override readonly name: string = 'TooLargeError';
}

/** 422: a field breaks a rule; `errors` says which. */
export class InvalidError extends CouncilError {
  override readonly name: string = 'InvalidError';
}

/** 429: too many requests; `retryAfter` says how long to wait. */
export class TooManyRequestsError extends CouncilError {
  override readonly name: string = 'TooManyRequestsError';
}

/** 500 and other errors of the service. */
export class ServerError extends CouncilError {
  override readonly name: string = 'ServerError';
}

/** 502, 503 or 504: the service is about to stop, overloaded, or cannot reach its log. */
export class UnavailableError extends CouncilError {
  override readonly name: string = 'UnavailableError';
}

/** There is no answer, or it is incomplete. */
export class UnreachableError extends CouncilError {
  override readonly name: string = 'UnreachableError';

  /** @param url of the service @param cause the error of fetch */
  constructor(url: string, cause?: unknown) {
    super(`Cannot reach the service at ${url}: is it running?`, { status: null, cause });
  }
}

/** The server is not a council service, or a version that this client does not understand. */
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

/** The error for an answer other than 2xx. */
export function refusalOf(detail: string, refusal: Refusal & { readonly status: number }): CouncilError {
  const Refused = BY_STATUS[refusal.status] ?? (refusal.status >= 500 ? ServerError : CouncilError);
  return new Refused(detail, refusal);
}
