/** The inbox: the open pauses of all runs. */
import type { Approval, ApprovalGone } from '../generated/schemas.js';
import type { CursorStream } from './cursor-stream.js';
import { cursorStream } from './cursor-stream.js';
import { UnexpectedAnswerError } from './errors.js';
import type { StreamedMessage } from './event-stream.js';
import type { Api, CallOptions } from './http.js';
import { jsonIn, pathOf } from './http.js';

/** Which pauses are wanted. */
export interface ApprovalFilters extends CallOptions {
  /** Only those that the caller may decide. Default: all. */
  readonly mine?: boolean | undefined;
  /** Id of the blueprint whose runs are wanted. Default: all. */
  readonly blueprint?: string | undefined;
}

export interface ApprovalListOptions extends ApprovalFilters {
  /** Only those that have waited since this time, or a later one. */
  readonly since?: Date | string | undefined;
  /** Most pauses. Default: the service's. */
  readonly limit?: number | undefined;
}

export interface WatchOptions extends ApprovalFilters {
  /** The `cursor` of an earlier stream. Default: begin with all open pauses. */
  readonly from?: string | null | undefined;
}

/**
 * `waiting`: a pause is new, has gained a vote, or has other approvers now; the same one may come again. `gone`: it was
 * decided, its run has ended, or, with `mine`, the caller may no longer decide it.
 */
export type ApprovalChange =
  | ({ readonly type: 'waiting' } & Readonly<Approval>)
  | ({ readonly type: 'gone' } & Readonly<ApprovalGone>);

export class Approvals {
  readonly #api: Api;

  constructor(api: Api) {
    this.#api = api;
  }

  /** The open pauses, longest wait first. */
  list({ mine, blueprint, since, limit, signal }: ApprovalListOptions = {}): Promise<readonly Approval[]> {
    const query = { ...queryOf({ mine, blueprint }), since, limit };
    return this.#api.json({ path: pathOf('approvals'), query, signal });
  }

  /** Changes of the inbox, beginning with all open pauses, until the loop is left or the signal aborts. */
  watch({ from = null, mine, blueprint, signal }: WatchOptions = {}): CursorStream<ApprovalChange> {
    const path = pathOf('approvals', 'stream');
    return cursorStream(this.#api, { path, query: queryOf({ mine, blueprint }), from, signal }, changeIn);
  }
}

function queryOf({ mine, blueprint }: ApprovalFilters) {
  return { mine: mine === true ? 1 : null, blueprint };
}

/** Null: a kind of change that this client does not know. @throws {UnexpectedAnswerError} */
function changeIn({ event: type, data }: StreamedMessage): ApprovalChange | null {
  if (type !== 'waiting' && type !== 'gone') return null;
  const pause = jsonIn(data);
  const change = { type, ...(typeof pause === 'object' && pause) };
  if (isChange(change)) return change;
  throw new UnexpectedAnswerError('The service streams something that is no pause', { status: 200 });
}

function isChange(value: object): value is ApprovalChange {
  return 'run_id' in value && 'expected_seq' in value && Number.isSafeInteger(value.expected_seq);
}
