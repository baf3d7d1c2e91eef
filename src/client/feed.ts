/** The events of all runs, in the order of the log. */
import type { CursorStream } from './cursor-stream.js';
import { cursorStream } from './cursor-stream.js';
import { UnexpectedAnswerError } from './errors.js';
import type { Api, CallOptions } from './http.js';
import { pathOf } from './http.js';
import type { RunEvent } from './run-events.js';
import { runEventIn } from './run-events.js';

/** An event of some run. */
export type FeedEvent = RunEvent & { readonly run_id: string };

export interface FeedOptions extends CallOptions {
  /** The `cursor` of an earlier feed, or `head`: only what comes from now on. Default: all, from the first. */
  readonly from?: string | null | undefined;
  /** Types of events that are wanted. Default: all. */
  readonly types?: readonly RunEvent['type'][] | undefined;
  /** The blueprint whose runs are wanted. Default: all. */
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
  throw new UnexpectedAnswerError('The service streams an event of no run', { status: 200 });
}

function isOfRun(event: RunEvent): event is FeedEvent {
  return 'run_id' in event && typeof event.run_id === 'string';
}
