/** Failures as answers: the one table from error code to status. */
import { CouncilError } from '../errors.js';
import type * as CommonErrors from '../errors.js';
import type * as BlueprintErrors from '../blueprint/errors.js';
import type * as DocumentErrors from '../documents/errors.js';
import type * as DocxErrors from '../docx/errors.js';
import type * as SchemaErrors from '../jsonschema/errors.js';
import type * as KeyErrors from '../keys/errors.js';
import type * as LogErrors from '../eventlog/errors.js';
import type { FieldError, Problem } from '../generated/schemas.js';
import type * as ViewErrors from '../projections/errors.js';
import type * as PdfErrors from '../pdf/errors.js';
import type * as RunErrors from '../run/errors.js';
import type * as WebhookErrors from '../webhooks/errors.js';
import { isKeyOf } from '../system/element.js';
import { fieldOf, reasonOf } from '../system/untrusted.js';

export interface Refusal {
  readonly status: number;
  /** With 422: the broken rules. */
  readonly errors?: readonly FieldError[];
  readonly headers?: Readonly<Record<string, string>>;
}

/** A request that is refused before it reaches the domain; its message is the answer's `detail`. */
export class RequestRefused extends CouncilError<Refusal> {
  readonly code = 'http.refused';
}

/** 422 for broken rules; `detail` lists them in one line. */
export function brokenRules(errors: readonly FieldError[]): RequestRefused {
  const detail = errors.map(({ loc, msg }) => `${loc.join('.')}: ${msg}`).join('; ');
  return new RequestRefused(detail, { status: 422, errors });
}

interface Row {
  readonly status: number;
  /** Default: the error's own message. */
  readonly detail?: string;
  /** The code on the wire, if programs must distinguish the failure from others of the same status. */
  readonly code?: NonNullable<Problem['code']>;
  /** Seconds after which a client may retry. */
  readonly retryAfterSeconds?: number;
}

/** A fault of the service: clients get no details. */
const FAULT: Row = { status: 500, detail: 'The service failed to answer this request' };

/** The literal codes of a module's error classes; the base class has none. */
type CodesOf<Errors> = {
  [Name in keyof Errors]: Errors[Name] extends abstract new (...given: never) => { readonly code: infer Code }
    ? string extends Code
      ? never
      : Code
    : never;
}[keyof Errors];

/** Codes of all errors that can reach a route; a code without a row does not compile. */
type ErrorCode = CodesOf<
  typeof CommonErrors &
    typeof RunErrors &
    typeof BlueprintErrors &
    typeof DocumentErrors &
    typeof KeyErrors &
    typeof LogErrors &
    typeof ViewErrors &
    typeof PdfErrors &
    typeof DocxErrors &
    typeof SchemaErrors &
    typeof WebhookErrors
>;

const TABLE: Readonly<Record<ErrorCode, Row>> = {
  'run.unknown': { status: 404, code: 'run_unknown' },
  'run.erased': { status: 410 },
  'run.unfinished': { status: 409 },
  'run.finished': { status: 409 },
  'run.child': { status: 409 },
  'run.not-paused': { status: 400 },
  'run.not-approver': { status: 403 },
  'run.votes-used-up': { status: 409 },
  'run.pause-moved': { status: 409 },
  'run.another-draft-seen': { status: 409 },
  'run.session-unknown': { status: 404 },
  'run.budget-refused': { status: 422 },
  'run.key-reused': { status: 409 },
  'run.too-many-pending': { status: 503, retryAfterSeconds: 5 },
  'run.corrupt': { status: 500, detail: 'The record of this run is damaged' },
  'blueprint.nesting': { status: 422 },
  'blueprint.unknown': { status: 404 },
  'blueprint.taken': { status: 409 },
  'blueprint.moved': { status: 412 },
  'blueprint.too-large': { status: 413 },
  'blueprint.corrupt': { status: 500, detail: 'The record of this blueprint is damaged' },
  'blueprint.contended': { status: 503, retryAfterSeconds: 1 },
  'document.unknown': { status: 404 },
  'document.corrupt': { status: 500, detail: 'The record of this document is damaged' },
  'document.contended': { status: 503, retryAfterSeconds: 1 },
  'key.refused': { status: 422 },
  'key.taken': { status: 409, code: 'key_taken' },
  'key.not-first': { status: 401 },
  'key.ended': { status: 401 },
  'key.unknown': { status: 404, code: 'key_unknown' },
  'key.too-many': { status: 409 },
  'key.too-many-tickets': { status: 429, retryAfterSeconds: 5 },
  'key.contended': { status: 503, retryAfterSeconds: 1 },
  'key.crowded': { status: 503, retryAfterSeconds: 2 },
  'key.corrupt': { status: 500, detail: 'The record of the keys is damaged' },
  'webhook.unknown': { status: 404 },
  'webhook.delivery-unknown': { status: 404 },
  'webhook.disabled': { status: 409 },
  'webhook.too-many': { status: 409 },
  'webhook.contended': { status: 503, retryAfterSeconds: 1 },
  'webhook.corrupt': { status: 500, detail: 'The record of this webhook is damaged' },
  'views.failed': FAULT,
  'views.lost': { status: 503, retryAfterSeconds: 1 },
  'views.full': { status: 503, retryAfterSeconds: 10 },
  'views.behind': { status: 503, retryAfterSeconds: 1 },
  'pdf.refused': { status: 422 },
  'pdf.busy': { status: 503, retryAfterSeconds: 5 },
  'schemas.busy': { status: 503, retryAfterSeconds: 2 },
  // Longer than the client library retries by default, because another attempt takes as long as the first.
  'docx.timed-out': { status: 503, retryAfterSeconds: 60 },
  'pdf.timed-out': { status: 503, retryAfterSeconds: 60 },
  // From computing a document's vectors; a run records its failing model in its own events.
  'model.failed': { status: 503, retryAfterSeconds: 10 },
  'service.stopping': { status: 503, detail: 'The service is stopping', retryAfterSeconds: 2 },
  'log.unavailable': { status: 503, detail: 'The event log cannot be reached', retryAfterSeconds: 2 },
  'log.full': { status: 503, detail: 'The disk of the event log is full: nothing was recorded', retryAfterSeconds: 10 },
  'log.corrupt': { status: 500, detail: 'The event log is damaged' },
  'log.stream-removed': { status: 410, detail: 'The record was erased' },
  'log.closed': { status: 503, detail: 'The service is stopping', retryAfterSeconds: 2 },
  'log.outcome-unknown': {
    status: 503,
    detail: 'The event log did not answer in time: the request may still take effect',
    code: 'outcome_unknown',
    retryAfterSeconds: 2,
  },
  'log.too-large': { status: 422, detail: 'The run is too large to be recorded' },
  'backup.refused': { status: 409 },
  'backup.failed': { status: 503, retryAfterSeconds: 10 },
  'log.write-failed': FAULT,
  'log.conflict': FAULT,
  'log.dropped': FAULT,
  'log.replaced': FAULT,
  'log.stream-lost': FAULT,
  'log.nameless': FAULT,
  'log.invalid': FAULT,
  'config.invalid': FAULT,
  'data-dir.held': FAULT,
};

/** The answer to a failure. */
export interface ProblemAnswer {
  readonly status: number;
  readonly body: Readonly<Problem>;
  readonly headers: Readonly<Record<string, string>>;
}

/** The answer to a failure. For a fault it holds a fixed sentence and the request id, never the error. */
export function problemOf(error: unknown, requestId: string): ProblemAnswer {
  if (error instanceof RequestRefused) return refusalAnswer(error);
  const row = error instanceof CouncilError && isKeyOf(TABLE, error.code) ? TABLE[error.code] : FAULT;
  const detail = row.detail ?? reasonOf(error);
  const wait = row.retryAfterSeconds;
  return {
    status: row.status,
    body: {
      detail: row.status === 500 ? `${detail} (request ${requestId})` : detail,
      ...(row.code !== undefined && { code: row.code }),
      ...(row === TABLE['run.erased'] && { erased: erasedIn(error) }),
    },
    headers: wait === undefined ? {} : { 'Retry-After': String(wait) },
  };
}

/** The erasure in a RunErased. */
function erasedIn(error: unknown): NonNullable<Problem['erased']> {
  const erased = fieldOf(fieldOf(error, 'data'), 'erased');
  const text = (name: string): string | null => {
    const value = fieldOf(erased, name);
    return typeof value === 'string' ? value : null;
  };
  return { at: text('at') ?? '', by: text('by'), reason: text('reason') };
}

/** Whether an error is a fault of the service, and not a refusal, an outage or a stop. */
export function isFault(error: unknown): boolean {
  return problemOf(error, '').status === 500;
}

function refusalAnswer({ message, data: { status, errors, headers = {} } }: RequestRefused): ProblemAnswer {
  return { status, body: { detail: message, ...(errors !== undefined && { errors: [...errors] }) }, headers };
}
