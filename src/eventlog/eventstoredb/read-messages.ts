/** The requests of reads and subscriptions. */
import sharedPb from '@eventstore/db-client/generated/shared_pb.js';
import streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import type { Position, SubscribeOptions } from '../port.js';
import type { StreamNames } from './names.js';
import { serverPositionOf } from './names.js';

const { Options } = streamsPb.ReadReq;
const { FORWARDS, BACKWARDS } = Options.ReadDirection;

export interface StreamPart {
  readonly serverStream: string;
  readonly direction: 'forwards' | 'backwards';
  /** The first revision, inclusive, or null for the first event in this direction. */
  readonly from: number | null;
  readonly max: number;
}

/** Asks for a part of a stream. */
export function streamRequest({ serverStream, direction, from, max }: StreamPart): streamsPb.ReadReq {
  const identifier = new sharedPb.StreamIdentifier();
  identifier.setStreamName(Buffer.from(serverStream));
  const stream = new Options.StreamOptions();
  stream.setStreamIdentifier(identifier);
  if (from !== null) stream.setRevision(String(from));
  else if (direction === 'forwards') stream.setStart(new sharedPb.Empty());
  else stream.setEnd(new sharedPb.Empty());
  const options = unfiltered(max);
  options.setStream(stream);
  options.setReadDirection(direction === 'forwards' ? FORWARDS : BACKWARDS);
  return requestWith(options);
}

/** Asks for the newest events of the server, newest first. */
export function newestRequest(max: number): streamsPb.ReadReq {
  const all = new Options.AllOptions();
  all.setEnd(new sharedPb.Empty());
  const options = unfiltered(max);
  options.setAll(all);
  options.setReadDirection(BACKWARDS);
  return requestWith(options);
}

/** Asks for all events after a position, exclusive, those that are recorded already and those to come. */
export function subscribeRequest(
  after: Position,
  names: StreamNames,
  wanted: Pick<SubscribeOptions, 'categories' | 'types'>,
): streamsPb.ReadReq {
  const { commit, prepare } = serverPositionOf(after);
  const position = new Options.Position();
  position.setCommitPosition(String(commit));
  position.setPreparePosition(String(prepare));
  const all = new Options.AllOptions();
  all.setPosition(position);
  const options = new Options();
  options.setAll(all);
  options.setSubscription(new Options.SubscriptionOptions());
  options.setFilter(filterOf(names, wanted));
  return requestWith(options);
}

/** Events that the server scans for one page of a subscription. */
const SEARCH_WINDOW = 500;
/** Pages between two checkpoints: a checkpoint about every thousand events, as in the embedded log. */
const CHECKPOINT_PAGES = 2;

/**
 * Filters events that are certainly not wanted; the caller checks the others. The server filters by streams or by
 * types: by types only if all streams belong to this log.
 */
function filterOf(
  names: StreamNames,
  { categories, types }: Pick<SubscribeOptions, 'categories' | 'types'>,
): streamsPb.ReadReq.Options.FilterOptions {
  const filter = new Options.FilterOptions();
  const expression = new Options.FilterOptions.Expression();
  const prefixes = names.serverPrefixes(categories ?? null);
  if (types !== undefined && names.serverPrefixes(null) === null) {
    filter.setEventType(expression);
    expression.setRegex(`^(?:${types.join('|')})$`);
  } else {
    filter.setStreamIdentifier(expression);
    if (prefixes === null) expression.setRegex('^[^$]');
    else expression.setPrefixList([...prefixes]);
  }
  filter.setMax(SEARCH_WINDOW);
  filter.setCheckpointintervalmultiplier(CHECKPOINT_PAGES);
  return filter;
}

function unfiltered(max: number): streamsPb.ReadReq.Options {
  const options = new Options();
  options.setCount(String(max));
  options.setNoFilter(new sharedPb.Empty());
  return options;
}

function requestWith(options: streamsPb.ReadReq.Options): streamsPb.ReadReq {
  const ids = new Options.UUIDOption();
  ids.setString(new sharedPb.Empty());
  options.setUuidOption(ids);
  const request = new streamsPb.ReadReq();
  request.setOptions(options);
  return request;
}
