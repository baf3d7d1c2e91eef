/** Appends as they go over the wire, and what their answers mean. */
import type { BatchAppendResp } from '@eventstore/db-client/generated/streams_pb.js';
import streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import sharedPb from '@eventstore/db-client/generated/shared_pb.js';
import emptyPb from 'google-protobuf/google/protobuf/empty_pb.js';
import { AppendInvalid, AppendOutcomeUnknown, AppendTooLarge, LogUnavailable, RevisionConflict } from '../../errors.js';
import type { Appended, ExpectedRevision, NewEvent } from '../port.js';
import { positionOf } from './position.js';

/** An append that has passed its checks. */
export interface CheckedAppend {
  readonly stream: string;
  readonly events: readonly NewEvent[];
  readonly expected: ExpectedRevision | 'any';
  /** Each event's metadata as JSON. */
  readonly metadata: readonly string[];
}

/** An append to a stream as the server names it. No deadline is set: the server's own, 2 s, needs no common clock. */
export function appendMessage(
  correlationId: string,
  serverStream: string,
  { events, expected, metadata }: CheckedAppend,
): streamsPb.BatchAppendReq {
  const options = new streamsPb.BatchAppendReq.Options();
  options.setStreamIdentifier(streamIdentifier(serverStream));
  if (expected === 'none') options.setNoStream(new emptyPb.Empty());
  else if (expected === 'any') options.setAny(new emptyPb.Empty());
  else options.setStreamPosition(String(expected));
  const message = new streamsPb.BatchAppendReq();
  message.setCorrelationId(uuid(correlationId));
  message.setOptions(options);
  message.setProposedMessagesList(events.map((event, index) => proposed(event, metadata[index] ?? '{}')));
  message.setIsFinal(true);
  return message;
}

/** The id of the append that an answer answers. */
export function correlationIdOf(answer: BatchAppendResp): string {
  const id = answer.getCorrelationId();
  if (id === undefined) return '';
  const structured = id.getStructured();
  return structured === undefined ? id.getString() : dashed(structured);
}

/** What became of an append. Whatever the server's answer does not rule out may be written. */
export function outcomeOf(answer: BatchAppendResp, { stream, expected }: CheckedAppend): Appended | Error {
  const success = answer.getSuccess();
  const position = success?.getPosition();
  if (success !== undefined && position !== undefined) {
    const [commit, prepare] = [position.getCommitPosition(), position.getPreparePosition()];
    return { revision: Number(success.getCurrentRevision()), position: positionOf({ commit, prepare }) };
  }
  const status = answer.getError();
  const details = status?.getDetails();
  const bytes = details?.getValue_asU8() ?? new Uint8Array();
  switch (details?.getTypeName()) {
    case 'event_store.client.WrongExpectedVersion':
      return new RevisionConflict({
        stream,
        expected: expected === 'any' ? 'none' : expected,
        actual: actualIn(bytes),
      });
    case 'event_store.client.StreamDeleted':
      return new AppendInvalid({ stream, reason: 'the stream was deleted' });
    case 'event_store.client.MaximumAppendSizeExceeded': {
      const limit = sharedPb.MaximumAppendSizeExceeded.deserializeBinary(bytes).getMaxappendsize();
      return new AppendTooLarge({ stream, bytes: limit + 1, limit });
    }
    case 'event_store.client.BadRequest':
      return new AppendInvalid({ stream, reason: sharedPb.BadRequest.deserializeBinary(bytes).getMessage() });
    case 'event_store.client.AccessDenied':
      return new LogUnavailable({ cause: new Error(`The server denies access to "${stream}"`) });
    default:
      return new AppendOutcomeUnknown({ stream }, { cause: new Error(status?.getMessage() ?? 'The answer is empty') });
  }
}

/** A stream's name in a message. */
export function streamIdentifier(serverStream: string): sharedPb.StreamIdentifier {
  const identifier = new sharedPb.StreamIdentifier();
  identifier.setStreamName(new Uint8Array(Buffer.from(serverStream)));
  return identifier;
}

function proposed({ id, type, data }: NewEvent, metadata: string): streamsPb.BatchAppendReq.ProposedMessage {
  const message = new streamsPb.BatchAppendReq.ProposedMessage();
  message.setId(uuid(id));
  message.getMetadataMap().set('type', type).set('content-type', 'application/json');
  message.setData(new Uint8Array(Buffer.from(data)));
  message.setCustomMetadata(new Uint8Array(Buffer.from(metadata)));
  return message;
}

function actualIn(bytes: Uint8Array): 'none' | number {
  const conflict = sharedPb.WrongExpectedVersion.deserializeBinary(bytes);
  return conflict.hasCurrentStreamRevision() ? Number(conflict.getCurrentStreamRevision()) : 'none';
}

function uuid(text: string): sharedPb.UUID {
  const id = new sharedPb.UUID();
  id.setString(text);
  return id;
}

/** The server answers with two signed 64-bit numbers where it was asked with text. */
function dashed(structured: sharedPb.UUID.Structured): string {
  const hex = [structured.getMostSignificantBits(), structured.getLeastSignificantBits()]
    .map((bits) => BigInt.asUintN(64, BigInt(bits)).toString(16).padStart(16, '0'))
    .join('');
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}
