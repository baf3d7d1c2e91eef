/** The inbox: the open pauses of all runs. */
import type { Approval, ApprovalGone } from '../generated/schemas.js';
import type { CursorStream } from './cursor-stream.js';
import { cursorStream } from './cursor-stream.js';
import { UnexpectedAnswerError } from './errors.js';
import type { StreamedMessage } from './event-stream.js';
import type { Api, CallOptions } from './http.js';
import { jsonIn, pathOf } from './http.js';

export interface ApprovalFilters extends CallOptions {
  /** Whether to give only pauses that the caller may decide. Default: false. */
  readonly mine?: boolean | undefined;
  /** Gives only pauses of runs of the blueprint with this id. Default: all. */
  readonly blueprint?: string | undefined;
}

export interface ApprovalListOptions extends ApprovalFilters {
  /** Gives only pauses that began at this time or later; as text in ISO 8601. Default: all. */
  readonly since?: Date | string | undefined;
  /** Largest number of pauses. Default: that of the service. */
  readonly limit?: number | undefined;
}

export interface WatchOptions extends ApprovalFilters {
  /** The `cursor` of an earlier stream. Default: the stream begins with all open pauses. */
  readonly from?: string | null | undefined;
}

/**
 * `waiting`: a pause is new, has another vote or other approvers. A pause may come more than once. `gone`: the pause was
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

  /** The open pauses, the oldest first. */
  list({ mine, blueprint, since, limit, signal }: ApprovalListOptions = {}): Promise<readonly Approval[]> {
    const query = { ...queryOf({ mine, blueprint }), since, limit };
    return this.#api.json({ path: pathOf('approvals'), query, signal });
  }

  /** All open pauses, then each change of the inbox, until the loop ends or the signal aborts. */
  watch({ from = null, mine, blueprint, signal }: WatchOptions = {}): CursorStream<ApprovalChange> {
    const path = pathOf('approvals', 'stream');
    return cursorStream(this.#api, { path, query: queryOf({ mine, blueprint }), from, signal }, changeIn);
  }
}

function queryOf({ mine, blueprint }: ApprovalFilters) {
  return { mine: mine === true ? 1 : null, blueprint };
}

/** The change, or null for a kind that this client does not know. @throws {UnexpectedAnswerError} */
function changeIn({ event: type, data }: StreamedMessage): ApprovalChange | null {
  if (type !== 'waiting' && type !== 'gone') return null;
  const pause = jsonIn(data);
  const change = { type, ...(typeof pause === 'object' && pause) };
  if (isChange(change)) return change;
  throw new UnexpectedAnswerError('The service sent a message that is not a pause', { status: 200 });
}

function isChange(value: object): value is ApprovalChange {
  return 'run_id' in value && 'expected_seq' in value && Number.isSafeInteger(value.expected_seq);
}
