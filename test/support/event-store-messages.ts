/** Messages of EventStoreDB's streams service, as a server 23.10 sends them. */
import gossipPb from '@eventstore/db-client/generated/gossip_pb.js';
import statusPb from '@eventstore/db-client/generated/status_pb.js';
import sharedPb from '@eventstore/db-client/generated/shared_pb.js';
import streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import type { ServiceError } from '@grpc/grpc-js';
import anyPb from 'google-protobuf/google/protobuf/any_pb.js';
import { Metadata, status } from '@grpc/grpc-js';
import type { RevisionConflict } from '../../src/eventlog/errors.js';
import { AppendInvalid, AppendTooLarge } from '../../src/eventlog/errors.js';
import type { ExpectedRevision, NewEvent, RecordedEvent } from '../../src/eventlog/port.js';

/** Largest append of a server with its default settings. */
const MAX_APPEND_BYTES = 1024 * 1024;

/** A requested append. */
export interface AskedAppend {
  readonly stream: string;
  readonly events: readonly NewEvent[];
  readonly expected: ExpectedRevision | 'any';
}

/** The position of an event: commit and prepare positions are equal, as mostly on a real server. */
export interface Placed {
  readonly revision: number;
  readonly ordinal: number;
}

/** The append in a request. */
export function askedIn(request: streamsPb.BatchAppendReq): AskedAppend {
  const options = request.getOptions() ?? new streamsPb.BatchAppendReq.Options();
  return {
    stream: Buffer.from(options.getStreamIdentifier()?.getStreamName_asU8() ?? []).toString(),
    expected: options.hasNoStream() ? 'none' : options.hasAny() ? 'any' : Number(options.getStreamPosition()),
    events: request.getProposedMessagesList().map((message) => ({
      id: message.getId()?.getString() ?? '',
      type: message.getMetadataMap().get('type') ?? '',
      data: Buffer.from(message.getData_asU8()).toString(),
      metadata: JSON.parse(Buffer.from(message.getCustomMetadata_asU8()).toString() || '{}') as Record<string, string>,
    })),
  };
}

/** The answer to a written append. */
export function written({ revision, ordinal }: Placed): streamsPb.BatchAppendResp {
  const position = new sharedPb.AllStreamPosition();
  position.setCommitPosition(String(ordinal));
  position.setPreparePosition(String(ordinal));
  const success = new streamsPb.BatchAppendResp.Success();
  success.setCurrentRevision(String(revision));
  success.setPosition(position);
  const answer = new streamsPb.BatchAppendResp();
  answer.setSuccess(success);
  return answer;
}

/** The answer to an append at the wrong revision. */
export function conflicting({ expected, actual }: RevisionConflict['data']): streamsPb.BatchAppendResp {
  const conflict = new sharedPb.WrongExpectedVersion();
  if (actual === 'none') conflict.setCurrentNoStream(new sharedPb.Empty());
  else conflict.setCurrentStreamRevision(String(actual));
  if (expected === 'none') conflict.setExpectedNoStream(new sharedPb.Empty());
  else conflict.setExpectedStreamPosition(String(expected));
  return refusal('WrongExpectedVersion', conflict.serializeBinary());
}

/** The answer to a refused append. */
export function refused(error: unknown): streamsPb.BatchAppendResp {
  if (error instanceof AppendTooLarge) {
    const exceeded = new sharedPb.MaximumAppendSizeExceeded();
    exceeded.setMaxappendsize(MAX_APPEND_BYTES);
    return refusal('MaximumAppendSizeExceeded', exceeded.serializeBinary());
  }
  if (error instanceof AppendInvalid) {
    const request = new sharedPb.BadRequest();
    request.setMessage(error.data.reason);
    return refusal('BadRequest', request.serializeBinary());
  }
  return refusal('Unknown');
}

export function appendDenied(): streamsPb.BatchAppendResp {
  return refusal('AccessDenied');
}

export function streamDeleted(): streamsPb.BatchAppendResp {
  return refusal('StreamDeleted');
}

export function timedOut(): streamsPb.BatchAppendResp {
  return refusal('Timeout');
}

/** A server that is not ready answers without details. */
export function appendNotReady(): streamsPb.BatchAppendResp {
  const answer = refusal('');
  answer
    .getError()
    ?.setMessage('Server Is Not Ready')
    .getDetails()
    ?.setTypeUrl('type.googleapis.com/google.protobuf.Empty');
  return answer;
}

/** An answer with an error, whose details are a message of this name. */
function refusal(name: string, details: Uint8Array = new Uint8Array()): streamsPb.BatchAppendResp {
  const error = new statusPb.Status();
  error.setMessage(name);
  const any = new anyPb.Any();
  any.pack(details, `event_store.client.${name}`);
  error.setDetails(any);
  const answer = new streamsPb.BatchAppendResp();
  answer.setError(error);
  return answer;
}

export function notReady(): ServiceError {
  return serviceError(status.UNAVAILABLE, 'Server Is Not Ready');
}

export function accessDenied(): ServiceError {
  return serviceError(status.PERMISSION_DENIED, 'Access Denied', { exception: 'access-denied' });
}

/** The end of a read of a stream that was deleted for good. */
export function readDeleted(stream: string): ServiceError {
  const trailer = { exception: 'stream-deleted', 'stream-name': stream };
  return serviceError(status.FAILED_PRECONDITION, `Event stream '${stream}' is deleted.`, trailer);
}

/** An event read. */
export function eventAnswer(stream: string, event: RecordedEvent, ordinal: number): streamsPb.ReadResp {
  const record = new streamsPb.ReadResp.ReadEvent.RecordedEvent();
  const id = new sharedPb.UUID();
  id.setString(event.id);
  record.setId(id);
  record.setStreamIdentifier(identifier(stream));
  record.setStreamRevision(String(event.revision));
  record.setCommitPosition(String(ordinal));
  record.setPreparePosition(String(ordinal));
  const created = String((event.recordedAtMs ?? 0) * 10_000);
  record.getMetadataMap().set('type', event.type).set('content-type', 'application/json').set('created', created);
  record.setData(new Uint8Array(Buffer.from(event.data)));
  record.setCustomMetadata(new Uint8Array(Buffer.from(JSON.stringify(event.metadata))));
  const read = new streamsPb.ReadResp.ReadEvent();
  read.setEvent(record);
  read.setCommitPosition(String(ordinal));
  const answer = new streamsPb.ReadResp();
  answer.setEvent(read);
  return answer;
}

export function notFoundAnswer(stream: string): streamsPb.ReadResp {
  const notFound = new streamsPb.ReadResp.StreamNotFound();
  notFound.setStreamIdentifier(identifier(stream));
  const answer = new streamsPb.ReadResp();
  answer.setStreamNotFound(notFound);
  return answer;
}

export function confirmedAnswer(): streamsPb.ReadResp {
  const confirmation = new streamsPb.ReadResp.SubscriptionConfirmation();
  confirmation.setSubscriptionId('fake');
  const answer = new streamsPb.ReadResp();
  answer.setConfirmation(confirmation);
  return answer;
}

export function caughtUpAnswer(): streamsPb.ReadResp {
  const answer = new streamsPb.ReadResp();
  answer.setCaughtUp(new streamsPb.ReadResp.CaughtUp());
  return answer;
}

export function checkpointAnswer(ordinal: number): streamsPb.ReadResp {
  const checkpoint = new streamsPb.ReadResp.Checkpoint();
  checkpoint.setCommitPosition(String(ordinal));
  checkpoint.setPreparePosition(String(ordinal));
  const answer = new streamsPb.ReadResp();
  answer.setCheckpoint(checkpoint);
  return answer;
}

/** A node in a gossip answer. */
export interface Member {
  readonly port: number;
  readonly isLeader: boolean;
}

export function gossipAnswer(members: readonly Member[]): gossipPb.ClusterInfo {
  const info = new gossipPb.ClusterInfo();
  const { LEADER, FOLLOWER } = gossipPb.MemberInfo.VNodeState;
  const list = members.map(({ port, isLeader }) => {
    const endPoint = new gossipPb.EndPoint();
    endPoint.setAddress('127.0.0.1');
    endPoint.setPort(port);
    const member = new gossipPb.MemberInfo();
    member.setInstanceId(new sharedPb.UUID());
    member.setTimeStamp('0');
    member.setState(isLeader ? LEADER : FOLLOWER);
    member.setIsAlive(true);
    member.setHttpEndPoint(endPoint);
    return member;
  });
  info.setMembersList(list);
  return info;
}

/** The end of a call with a status; `exception` names the error in a trailer. */
export function serviceError(
  code: status,
  details: string,
  trailer: Readonly<Record<string, string>> = {},
): ServiceError {
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(trailer)) metadata.set(name, value);
  return Object.assign(new Error(details), { code, details, metadata });
}

/** The answer of a follower to a call that requires the leader. */
export function notLeader(leaderPort: number): ServiceError {
  return serviceError(status.NOT_FOUND, 'Leader info available', {
    exception: 'not-leader',
    'leader-endpoint-host': '127.0.0.1',
    'leader-endpoint-port': String(leaderPort),
  });
}

function identifier(stream: string): sharedPb.StreamIdentifier {
  const made = new sharedPb.StreamIdentifier();
  made.setStreamName(new Uint8Array(Buffer.from(stream)));
  return made;
}
