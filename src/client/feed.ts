/** The events of all runs in the order of the log. */
import type { CursorStream } from './cursor-stream.js';
import { cursorStream } from './cursor-stream.js';
import { UnexpectedAnswerError } from './errors.js';
import type { ParentRunShown } from '../generated/schemas.js';
import type { Api, CallOptions } from './http.js';
import { pathOf } from './http.js';
import type { RunEvent } from './run-events.js';
import { runEventIn } from './run-events.js';

/** An event and its run, with the run that has started that one for a council. */
export type FeedEvent = RunEvent & { readonly run_id: string; readonly parent_run?: ParentRunShown };

export interface FeedOptions extends CallOptions {
  /** The `cursor` of an earlier feed, or `head` for future events only. Default: from the first event. */
  readonly from?: string | null | undefined;
  /** Gives only events of these types. Default: all. */
  readonly types?: readonly RunEvent['type'][] | undefined;
  /** Gives only events of runs of the blueprint with this id. Default: all. */
  readonly blueprint?: string | undefined;
}

export function feedStream(api: Api, { from = null, types, blueprint, signal }: FeedOptions): CursorStream<FeedEvent> {
  const query = { types, blueprint_id: blueprint };
  return cursorStream(api, { path: pathOf('feed'), query, from, signal }, ({ data }) => feedEventIn(data));
}

/** @throws {UnexpectedAnswerError} */
function feedEventIn(text: string): FeedEvent {
  const event = runEventIn(text);
  if (isOfRun(event)) return event;
  throw new UnexpectedAnswerError('The service sent an event without a run', { status: 200 });
}

function isOfRun(event: RunEvent): event is FeedEvent {
  return 'run_id' in event && typeof event.run_id === 'string';
}
