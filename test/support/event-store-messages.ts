/** The messages of EventStoreDB's streams service from the server's side, as 23.10 was seen to send them. */
import gossipPb from '@eventstore/db-client/generated/gossip_pb.js';
import sharedPb from '@eventstore/db-client/generated/shared_pb.js';
import statusPb from '@eventstore/db-client/generated/status_pb.js';
import streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import type { ServiceError } from '@grpc/grpc-js';
import { Metadata, status } from '@grpc/grpc-js';
import anyPb from 'google-protobuf/google/protobuf/any_pb.js';
import emptyPb from 'google-protobuf/google/protobuf/empty_pb.js';
import { AppendInvalid, AppendTooLarge, RevisionConflict } from '../../src/eventlog/errors.js';
import type { ExpectedRevision, NewEvent, RecordedEvent } from '../../src/eventlog/port.js';

/** Largest append of a server with its default settings. */
const MAX_APPEND_BYTES = 1024 * 1024;

/** An append as it was asked for. */
export interface AskedAppend {
  readonly stream: string;
  readonly events: readonly NewEvent[];
  readonly expected: ExpectedRevision | 'any';
}

/** Where an event stands: the fake's commit and prepare positions are equal, as a real server's mostly are. */
export interface Placed {
  readonly revision: number;
  readonly ordinal: number;
}

/** What a batch append asks. */
export function askedIn(request: streamsPb.BatchAppendReq): AskedAppend {
  const options = request.getOptions() ?? new streamsPb.BatchAppendReq.Options();
  const position = Number(options.getStreamPosition());
  return {
    stream: Buffer.from(options.getStreamIdentifier()?.getStreamName_asU8() ?? []).toString(),
    expected: options.hasNoStream() ? 'none' : options.hasAny() ? 'any' : position,
    events: request.getProposedMessagesList().map((message) => ({
      id: message.getId()?.getString() ?? '',
      type: message.getMetadataMap().get('type') ?? '',
      data: Buffer.from(message.getData_asU8()).toString(),
      metadata: JSON.parse(Buffer.from(message.getCustomMetadata_asU8()).toString()) as Record<string, string>,
    })),
  };
}

/** That an append was written. */
export function written(request: streamsPb.BatchAppendReq, { revision, ordinal }: Placed): streamsPb.BatchAppendResp {
  const position = new sharedPb.AllStreamPosition();
  position.setCommitPosition(String(ordinal));
  position.setPreparePosition(String(ordinal));
  const success = new streamsPb.BatchAppendResp.Success();
  success.setCurrentRevision(String(revision));
  success.setPosition(position);
  const answer = answerTo(request);
  answer.setSuccess(success);
  return answer;
}

/** That an append was not written, and why. */
export function refused(request: streamsPb.BatchAppendReq, error: unknown): streamsPb.BatchAppendResp {
  if (error instanceof RevisionConflict) return failed(request, 'WrongExpectedVersion', conflictBytes(error.data));
  if (error instanceof AppendTooLarge) {
    const limit = new sharedPb.MaximumAppendSizeExceeded();
    limit.setMaxappendsize(MAX_APPEND_BYTES);
    return failed(request, 'MaximumAppendSizeExceeded', limit.serializeBinary());
  }
  if (error instanceof AppendInvalid) {
    const bad = new sharedPb.BadRequest();
    bad.setMessage(error.data.reason);
    return failed(request, 'BadRequest', bad.serializeBinary());
  }
  return failed(request, 'Unknown');
}

/** An answer with an error of this name, in the package event_store.client; `NotReady` carries no details, as measured. */
export function failed(
  request: streamsPb.BatchAppendReq,
  name:
    | 'WrongExpectedVersion'
    | 'MaximumAppendSizeExceeded'
    | 'BadRequest'
    | 'Unknown'
    | 'Timeout'
    | 'AccessDenied'
    | 'StreamDeleted'
    | 'NotReady',
  bytes: Uint8Array = new Uint8Array(),
): streamsPb.BatchAppendResp {
  const details = new anyPb.Any();
  details.pack(bytes, name === 'NotReady' ? 'google.protobuf.Empty' : `event_store.client.${name}`);
  const error = new statusPb.Status();
  error.setMessage(name === 'NotReady' ? 'Server Is Not Ready' : name);
  error.setDetails(details);
  const answer = answerTo(request);
  answer.setError(error);
  return answer;
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
  record.getMetadataMap().set('type', event.type).set('content-type', 'application/json');
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

/** A node as gossip tells of it. */
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

/** A call's end with a status of its own; `exception` names it in a trailer. */
export function serviceError(
  code: status,
  details: string,
  trailer: Readonly<Record<string, string>> = {},
): ServiceError {
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(trailer)) metadata.set(name, value);
  return Object.assign(new Error(details), { code, details, metadata });
}

/** How a node that is no leader answers who asked for one. */
export function notLeader(leaderPort: number): ServiceError {
  return serviceError(status.NOT_FOUND, 'Leader info available', {
    exception: 'not-leader',
    'leader-endpoint-host': '127.0.0.1',
    'leader-endpoint-port': String(leaderPort),
  });
}

function answerTo(request: streamsPb.BatchAppendReq): streamsPb.BatchAppendResp {
  const answer = new streamsPb.BatchAppendResp();
  answer.setCorrelationId(request.getCorrelationId());
  answer.setStreamIdentifier(request.getOptions()?.getStreamIdentifier());
  return answer;
}

function conflictBytes({ expected, actual }: RevisionConflict['data']): Uint8Array {
  const conflict = new sharedPb.WrongExpectedVersion();
  if (actual === 'none') conflict.setCurrentNoStream(new emptyPb.Empty());
  else conflict.setCurrentStreamRevision(String(actual));
  if (expected === 'none') conflict.setExpectedNoStream(new emptyPb.Empty());
  else conflict.setExpectedStreamPosition(String(expected));
  return conflict.serializeBinary();
}

function identifier(stream: string): sharedPb.StreamIdentifier {
  const made = new sharedPb.StreamIdentifier();
  made.setStreamName(new Uint8Array(Buffer.from(stream)));
  return made;
}
