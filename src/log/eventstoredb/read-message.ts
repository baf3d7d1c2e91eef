/** What is asked of the server's read call. */
import streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import sharedPb from '@eventstore/db-client/generated/shared_pb.js';
import type { Position } from '../port.js';
import { streamIdentifier } from './append-message.js';
import { serverPositionOf } from './position.js';
import type { StreamNames } from './stream-names.js';

const { FORWARDS, BACKWARDS } = streamsPb.ReadReq.Options.ReadDirection;

/**
 * Events looked at for one page of a filtered read, and pages after which a subscriber is told how far it has come:
 * about every thousand events, as in the embedded log.
 */
const FILTER_WINDOW = 500;
const CHECKPOINT_PAGES = 2;

export interface StreamReading {
  readonly serverStream: string;
  /** First revision, inclusive; null: the first, or backwards the last. */
  readonly from: number | null;
  readonly backwards: boolean;
  readonly max: number;
}

/** A range of one stream. */
export function readStreamMessage({ serverStream, from, backwards, max }: StreamReading): streamsPb.ReadReq {
  const stream = new streamsPb.ReadReq.Options.StreamOptions();
  stream.setStreamIdentifier(streamIdentifier(serverStream));
  if (from !== null) stream.setRevision(String(from));
  else if (backwards) stream.setEnd(new sharedPb.Empty());
  else stream.setStart(new sharedPb.Empty());
  const options = bareOptions();
  options.setStream(stream);
  options.setCount(String(max));
  options.setReadDirection(backwards ? BACKWARDS : FORWARDS);
  options.setNoFilter(new sharedPb.Empty());
  return message(options);
}

/** The events of all streams of this log from a position on, inclusive as the server reads; null: from the first. */
export function readAllMessage(
  from: Position | null,
  { names, categories, max }: { names: StreamNames; categories: readonly string[] | null; max: number },
): streamsPb.ReadReq {
  const options = allOptions(from, filter(names, categories));
  options.setCount(String(max));
  options.setReadDirection(FORWARDS);
  return message(options);
}

/** The newest events of this log, newest first. */
export function readLastMessage(names: StreamNames, max: number): streamsPb.ReadReq {
  const all = new streamsPb.ReadReq.Options.AllOptions();
  all.setEnd(new sharedPb.Empty());
  const options = bareOptions();
  options.setAll(all);
  options.setFilter(filter(names, null));
  options.setCount(String(max));
  options.setReadDirection(BACKWARDS);
  return message(options);
}

/** What comes after a position, exclusive as the server subscribes, and whatever is appended later. */
export function subscribeMessage(
  after: Position | null,
  { names, categories }: { names: StreamNames; categories: readonly string[] | null },
): streamsPb.ReadReq {
  const options = allOptions(after, filter(names, categories));
  options.setSubscription(new streamsPb.ReadReq.Options.SubscriptionOptions());
  options.setReadDirection(FORWARDS);
  return message(options);
}

function allOptions(
  position: Position | null,
  filterOptions: streamsPb.ReadReq.Options.FilterOptions,
): streamsPb.ReadReq.Options {
  const all = new streamsPb.ReadReq.Options.AllOptions();
  if (position === null) all.setStart(new sharedPb.Empty());
  else {
    const { commit, prepare } = serverPositionOf(position);
    const place = new streamsPb.ReadReq.Options.Position();
    place.setCommitPosition(commit);
    place.setPreparePosition(prepare);
    all.setPosition(place);
  }
  const options = bareOptions();
  options.setAll(all);
  options.setFilter(filterOptions);
  return options;
}

/** Spares the wire what is surely another's; the rest is looked at when it comes. */
function filter(names: StreamNames, categories: readonly string[] | null): streamsPb.ReadReq.Options.FilterOptions {
  const expression = new streamsPb.ReadReq.Options.FilterOptions.Expression();
  const prefixes = names.serverPrefixes(categories);
  if (prefixes === null) expression.setRegex('^[^$]');
  else expression.setPrefixList([...prefixes]);
  const options = new streamsPb.ReadReq.Options.FilterOptions();
  options.setStreamIdentifier(expression);
  options.setMax(FILTER_WINDOW);
  options.setCheckpointintervalmultiplier(CHECKPOINT_PAGES);
  return options;
}

function bareOptions(): streamsPb.ReadReq.Options {
  const uuids = new streamsPb.ReadReq.Options.UUIDOption();
  uuids.setString(new sharedPb.Empty());
  const options = new streamsPb.ReadReq.Options();
  options.setUuidOption(uuids);
  options.setResolveLinks(false);
  return options;
}

function message(options: streamsPb.ReadReq.Options): streamsPb.ReadReq {
  const request = new streamsPb.ReadReq();
  request.setOptions(options);
  return request;
}
