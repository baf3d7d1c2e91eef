/** The calls of EventStoreDB's streams service, answered like a server 23.10, except where a script says otherwise. */
import type {
  BatchAppendReq,
  BatchAppendResp,
  ReadReq,
  ReadResp,
  TombstoneReq,
} from '@eventstore/db-client/generated/streams_pb.js';
import streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import type {
  Metadata,
  ServerDuplexStream,
  ServerUnaryCall,
  ServerWritableStream,
  ServiceError,
  sendUnaryData,
} from '@grpc/grpc-js';
import { status } from '@grpc/grpc-js';
import { RevisionConflict } from '../../src/eventlog/errors.js';
import type { AskedAppend } from './event-store-messages.js';
import {
  accessDenied,
  appendDenied,
  appendNotReady,
  askedIn,
  caughtUpAnswer,
  checkpointAnswer,
  confirmedAnswer,
  conflicting,
  eventAnswer,
  notFoundAnswer,
  notLeader,
  notReady,
  readDeleted,
  refused,
  serviceError,
  streamDeleted,
  timedOut,
  written,
} from './event-store-messages.js';
import type { ServerEvent, ServerStorage } from './event-store-storage.js';

/** The fate of an append: whether it is written, and the answer. */
export type AppendFate =
  | 'answered'
  | 'written, then silence'
  | 'written, then reset'
  | 'written, then the call ends'
  | 'silence'
  | 'reset'
  | 'the call ends'
  | 'the call fails'
  | 'not ready'
  | 'timed out'
  | 'access denied'
  | 'stream deleted';

/** The answers to appends that were not written. */
const REFUSALS: Readonly<Partial<Record<AppendFate, () => BatchAppendResp>>> = {
  'not ready': appendNotReady,
  'timed out': timedOut,
  'access denied': appendDenied,
  'stream deleted': streamDeleted,
};

export type ReadFate =
  | 'answered'
  | 'silence'
  | 'reset'
  | 'not ready'
  | 'access denied'
  | 'busy for a moment'
  | 'not yet';

export type ReadKind = 'stream' | 'all' | 'subscription';

/** The fate of each call. A missing function means success. */
export interface Script {
  append?: (asked: AskedAppend) => AppendFate | Promise<AppendFate>;
  /** `from`: index of the event from which a read of all, or a subscription, starts. */
  read?: (kind: ReadKind, from: number) => ReadFate;
  /** The fate of a deletion of a stream. */
  tombstone?: (stream: string) => 'answered' | 'done, then reset' | 'refused';
  /** Whether a stream was deleted for good. */
  isDeleted?: (stream: string) => boolean;
  /** Whether subscriptions stay open and send nothing. */
  isMute?: () => boolean;
  /** The port of the leader, or null if this node leads. */
  leaderPort?: number | null;
  /** Whether gossip is answered. */
  gossip?: () => boolean;
}

type AppendStream = ServerDuplexStream<BatchAppendReq, BatchAppendResp>;

export interface Calls {
  batchAppend(call: AppendStream): void;
  read(call: ServerWritableStream<ReadReq, ReadResp>): void;
  tombstone(
    call: ServerUnaryCall<TombstoneReq, streamsPb.TombstoneResp>,
    answer: sendUnaryData<streamsPb.TombstoneResp>,
  ): void;
  /** Ends every open subscription, with an error or silently. */
  endSubscriptions(how: 'too slow' | 'unavailable' | 'silently'): void;
  subscriptions(): number;
}

export interface CallsParts {
  readonly storage: ServerStorage;
  readonly script: () => Script;
  /** Destroys the connections. */
  readonly reset: () => void;
}

export function serverCalls({ storage, script, reset }: CallsParts): Calls {
  const subscriptions = new Set<ServerWritableStream<ReadReq, ReadResp>>();
  /** Pending appends. A second copy gets no answer, like on a real server. */
  const underWay = new Set<string>();

  function batchAppend(call: AppendStream): void {
    call.on('error', () => undefined);
    call.on('end', () => call.end());
    call.on('data', (request: BatchAppendReq) => {
      // A real server also reports only after the first append that another node leads.
      const elsewhere = leaderElsewhere(call);
      if (elsewhere === null) void write(request, call);
      else call.emit('error', elsewhere);
    });
  }

  async function write(request: BatchAppendReq, call: AppendStream): Promise<void> {
    const asked = askedIn(request);
    const key = `${asked.stream} ${asked.events.map(({ id }) => id).join(' ')}`;
    if (underWay.has(key)) return;
    underWay.add(key);
    const answer = (result: BatchAppendResp): void => {
      if (!call.cancelled) call.write(result.setCorrelationId(request.getCorrelationId()));
    };
    try {
      const fate = (await script().append?.(asked)) ?? 'answered';
      const refusal = REFUSALS[fate];
      if (refusal !== undefined) return answer(refusal());
      if (storage.isDeleted(asked.stream)) return answer(streamDeleted());
      const isWritten = fate === 'answered' || fate.startsWith('written');
      const result = isWritten ? written(await storage.append(asked)) : null;
      if (fate === 'answered' && result !== null) answer(result);
      else cutOff(call, fate);
    } catch (error) {
      answer(error instanceof RevisionConflict ? conflicting(error.data) : refused(error));
    } finally {
      underWay.delete(key);
    }
  }

  /** How a call ends without an answer. */
  function cutOff(call: AppendStream, fate: AppendFate): void {
    if (fate.endsWith('reset')) reset();
    else if (fate.endsWith('the call ends')) call.end();
    else if (fate === 'the call fails') call.emit('error', notReady());
  }

  function read(call: ServerWritableStream<ReadReq, ReadResp>): void {
    call.on('error', () => undefined);
    const kind = kindOf(call.request);
    const fate = script().read?.(kind, kind === 'stream' ? 0 : placeIn(call.request)) ?? 'answered';
    const deleted = kind === 'stream' ? refusedAsDeleted(streamIn(call.request)) : null;
    const error = leaderElsewhere(call) ?? deleted ?? errorOf(fate);
    if (error !== null) call.emit('error', error);
    else if (fate === 'reset') reset();
    else if (fate === 'not yet') void send(call, nothingYet(call.request));
    else if (fate === 'answered') void send(call, answersTo(call, kind));
  }

  function refusedAsDeleted(stream: string): ServiceError | null {
    return script().isDeleted?.(stream) === true || storage.isDeleted(stream) ? readDeleted(stream) : null;
  }

  function tombstone(
    call: ServerUnaryCall<TombstoneReq, streamsPb.TombstoneResp>,
    answer: sendUnaryData<streamsPb.TombstoneResp>,
  ): void {
    const name = call.request.getOptions()?.getStreamIdentifier()?.getStreamName_asU8() ?? [];
    const stream = Buffer.from(name).toString();
    const fate = script().tombstone?.(stream) ?? 'answered';
    const refusal = storage.isDeleted(stream) ? readDeleted(stream) : null;
    if (refusal !== null) return answer(refusal);
    if (fate === 'refused') return answer(notReady());
    void storage.tombstone(stream).then(() => {
      if (fate === 'answered') answer(null, new streamsPb.TombstoneResp());
      else reset();
    });
  }

  function answersTo(call: ServerWritableStream<ReadReq, ReadResp>, kind: ReadKind): AsyncIterable<ReadResp> {
    if (kind === 'subscription') return subscribe(call);
    return kind === 'stream' ? streamAnswers(call.request) : allAnswers(call.request);
  }

  function leaderElsewhere(call: { readonly metadata: Metadata }): ServiceError | null {
    const leaderPort = script().leaderPort ?? null;
    return leaderPort !== null && call.metadata.get('requires-leader')[0] === 'true' ? notLeader(leaderPort) : null;
  }

  /** Waits while the client does not read. */
  async function send(call: ServerWritableStream<ReadReq, ReadResp>, answers: AsyncIterable<ReadResp>): Promise<void> {
    try {
      for await (const answer of answers) {
        if (call.cancelled || call.destroyed) return;
        if (!call.write(answer)) await drained(call);
      }
      call.end();
    } catch (error) {
      call.emit('error', serviceError(status.UNAVAILABLE, String(error)));
    }
  }

  /** Like a real server, whose reads do not find a stream whose first write is still pending. */
  async function* nothingYet(request: ReadReq): AsyncIterable<ReadResp> {
    yield notFoundAnswer(streamIn(request));
  }

  async function* streamAnswers(request: ReadReq): AsyncIterable<ReadResp> {
    const asked = request.getOptions()?.getStream();
    const stream = streamIn(request);
    const from = asked?.hasRevision() === true ? Number(asked.getRevision()) : null;
    let left = countIn(request);
    for await (const found of storage.streamEvents(stream, { from, backwards: isBackwards(request) })) {
      left -= 1;
      yield eventAnswer(found.stream, found.event, found.ordinal);
      if (left === 0) return;
    }
    if (!(await exists(stream))) yield notFoundAnswer(stream);
  }

  async function exists(stream: string): Promise<boolean> {
    for await (const found of storage.streamEvents(stream, { from: null, backwards: true })) return found.ordinal > 0;
    return false;
  }

  async function* allAnswers(request: ReadReq): AsyncIterable<ReadResp> {
    const isWanted = filterIn(request);
    let left = countIn(request);
    // Server reads include their start, so this one starts one event earlier.
    const from = Math.max(0, placeIn(request) - 1);
    for await (const found of isBackwards(request) ? storage.allBackwards() : storage.allForwards(from)) {
      if (!isWanted(found)) continue;
      left -= 1;
      yield eventAnswer(found.stream, found.event, found.ordinal);
      if (left === 0) return;
    }
  }

  async function* subscribe(call: ServerWritableStream<ReadReq, ReadResp>): AsyncIterable<ReadResp> {
    const left = new AbortController();
    call.on('cancelled', () => left.abort());
    call.on('close', () => left.abort());
    subscriptions.add(call);
    const isWanted = filterIn(call.request);
    const filter = call.request.getOptions()?.getFilter();
    const checkpointEvery = (filter?.getMax() ?? 32) * (filter?.getCheckpointintervalmultiplier() ?? 1);
    let considered = 0;
    try {
      yield confirmedAnswer();
      for await (const found of storage.subscribe(placeIn(call.request), left.signal)) {
        if (found === 'caughtUp') {
          yield caughtUpAnswer();
          continue;
        }
        if (script().isMute?.() === true) continue;
        considered += 1;
        if (isWanted(found)) yield eventAnswer(found.stream, found.event, found.ordinal);
        if (considered % checkpointEvery === 0) yield checkpointAnswer(found.ordinal);
      }
    } finally {
      subscriptions.delete(call);
    }
  }

  return {
    batchAppend,
    read,
    tombstone,
    endSubscriptions(how) {
      for (const call of [...subscriptions]) {
        if (how === 'silently') call.end();
        else if (how === 'too slow')
          call.emit(
            'error',
            serviceError(status.ABORTED, 'Operation timed out: Consumer too slow to handle event while live.'),
          );
        else call.emit('error', serviceError(status.UNAVAILABLE, 'Connection dropped'));
      }
    },
    subscriptions: () => subscriptions.size,
  };
}

function kindOf(request: ReadReq): ReadKind {
  const options = request.getOptions();
  if (options?.hasSubscription() === true) return 'subscription';
  return options?.hasStream() === true ? 'stream' : 'all';
}

function streamIn(request: ReadReq): string {
  return Buffer.from(request.getOptions()?.getStream()?.getStreamIdentifier()?.getStreamName_asU8() ?? []).toString();
}

function errorOf(fate: ReadFate): ServiceError | null {
  switch (fate) {
    case 'not ready':
      return notReady();
    case 'busy for a moment':
      return serviceError(status.UNKNOWN, 'Unexpected ReadAllResult: Error');
    case 'access denied':
      return accessDenied();
    default:
      return null;
  }
}

function isBackwards(request: ReadReq): boolean {
  return request.getOptions()?.getReadDirection() === streamsPb.ReadReq.Options.ReadDirection.BACKWARDS;
}

function countIn(request: ReadReq): number {
  return Number(request.getOptions()?.getCount());
}

function placeIn(request: ReadReq): number {
  return Number(request.getOptions()?.getAll()?.getPosition()?.getCommitPosition() ?? 0);
}

/** Whether an event matches a filter, by its stream or its type. Without a filter, every event does. */
function filterIn(request: ReadReq): (found: ServerEvent) => boolean {
  const filter = request.getOptions()?.getFilter();
  const [ofStream, ofType] = [filter?.getStreamIdentifier(), filter?.getEventType()];
  if (ofStream !== undefined) return ({ stream }) => matches(ofStream, stream);
  if (ofType !== undefined) return ({ event }) => matches(ofType, event.type);
  return () => true;
}

/** By prefixes or a regular expression. */
function matches(expression: streamsPb.ReadReq.Options.FilterOptions.Expression, name: string): boolean {
  const regex = expression.getRegex();
  if (regex !== '') return new RegExp(regex).test(name);
  return expression.getPrefixList().some((prefix) => name.startsWith(prefix));
}

function drained(call: ServerWritableStream<ReadReq, ReadResp>): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      for (const event of ['drain', 'cancelled', 'close', 'error']) call.removeListener(event, end);
      resolve();
    };
    for (const event of ['drain', 'cancelled', 'close', 'error']) call.on(event, end);
  });
}
