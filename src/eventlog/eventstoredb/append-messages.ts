/** The messages of BatchAppend: an append as a request, and the meaning of its answer. */
import sharedPb from '@eventstore/db-client/generated/shared_pb.js';
import type { BatchAppendResp } from '@eventstore/db-client/generated/streams_pb.js';
import streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import { elementAt } from '../../system/element.js';
import { AppendInvalid, AppendTooLarge, LogDenied, RevisionConflict } from '../errors.js';
import type { Appended, ExpectedRevision, NewEvent } from '../port.js';
import { positionOf } from './names.js';

/** An append that has passed its checks. */
export interface CheckedAppend {
  readonly stream: string;
  readonly events: readonly NewEvent[];
  /** The metadata of each event as JSON text. */
  readonly metadata: readonly string[];
  readonly expected: ExpectedRevision | 'any';
}

/**
 * The request for an append, without an id. It has no deadline: the server compares it with its own clock, and gives up
 * a write after 2 s by itself.
 */
export function requestOf(
  { events, metadata, expected }: CheckedAppend,
  serverStream: string,
): streamsPb.BatchAppendReq {
  const stream = new sharedPb.StreamIdentifier();
  stream.setStreamName(Buffer.from(serverStream));
  const options = new streamsPb.BatchAppendReq.Options();
  options.setStreamIdentifier(stream);
  if (expected === 'none') options.setNoStream(new sharedPb.Empty());
  else if (expected === 'any') options.setAny(new sharedPb.Empty());
  else options.setStreamPosition(String(expected));
  const request = new streamsPb.BatchAppendReq();
  request.setOptions(options);
  request.setIsFinal(true);
  request.setProposedMessagesList(events.map((event, index) => messageOf(event, elementAt(metadata, index))));
  return request;
}

function messageOf({ id, type, data }: NewEvent, metadata: string): streamsPb.BatchAppendReq.ProposedMessage {
  const uuid = new sharedPb.UUID();
  uuid.setString(id);
  const message = new streamsPb.BatchAppendReq.ProposedMessage();
  message.setId(uuid);
  message.getMetadataMap().set('type', type).set('content-type', 'application/json');
  // As bytes, because the messages would carry text through base64.
  message.setData(Buffer.from(data));
  message.setCustomMetadata(Buffer.from(metadata));
  return message;
}

/** Gives a request the id that its answer carries. */
export function setId(request: streamsPb.BatchAppendReq, id: number): void {
  const structured = new sharedPb.UUID.Structured();
  structured.setLeastSignificantBits(String(id));
  const uuid = new sharedPb.UUID();
  uuid.setStructured(structured);
  request.setCorrelationId(uuid);
}

export function answeredId(answer: BatchAppendResp): number {
  return Number(answer.getCorrelationId()?.getStructured()?.getLeastSignificantBits());
}

/**
 * The result in an answer.
 *
 * @param redact removes the credentials from the server's text
 * @throws {RevisionConflict | AppendInvalid | AppendTooLarge | LogDenied} certainly not written
 * @throws {Error} of another class: the append may be written
 */
export function appendedIn(answer: BatchAppendResp, append: CheckedAppend, redact: (text: string) => string): Appended {
  const refusal = answer.getError();
  if (refusal !== undefined) throw refusalIn(refusal, append, redact);
  const success = answer.getSuccess();
  const position = success?.getPosition();
  if (success === undefined || position === undefined) throw new Error('The answer has no position');
  const [commit, prepare] = [position.getCommitPosition(), position.getPreparePosition()];
  return {
    revision: Number(success.getCurrentRevision()),
    position: positionOf({ commit: BigInt(commit), prepare: BigInt(prepare) }),
  };
}

type Status = NonNullable<ReturnType<BatchAppendResp['getError']>>;

const { WrongExpectedVersion, MaximumAppendSizeExceeded, BadRequest } = sharedPb;

function refusalIn(status: Status, append: CheckedAppend, redact: (text: string) => string): Error {
  const { stream } = append;
  switch (status.getDetails()?.getTypeName()) {
    case 'event_store.client.WrongExpectedVersion':
      return conflictIn(status, append);
    case 'event_store.client.StreamDeleted':
      return new AppendInvalid({ stream, reason: 'the stream was deleted' });
    case 'event_store.client.MaximumAppendSizeExceeded': {
      const limit = MaximumAppendSizeExceeded.deserializeBinary(bytesIn(status)).getMaxappendsize();
      return new AppendTooLarge({ stream, bytes: limit + 1, limit });
    }
    case 'event_store.client.BadRequest':
      return new AppendInvalid({ stream, reason: redact(BadRequest.deserializeBinary(bytesIn(status)).getMessage()) });
    case 'event_store.client.AccessDenied':
      return new LogDenied({ cause: new Error(redact(status.getMessage())) });
    default:
      // A timeout, a server that is not ready, and a server without a leader.
      return new Error(redact(status.getMessage()));
  }
}

function conflictIn(status: Status, { stream, expected }: CheckedAppend): RevisionConflict {
  const found = WrongExpectedVersion.deserializeBinary(bytesIn(status));
  const actual = found.hasCurrentStreamRevision() ? Number(found.getCurrentStreamRevision()) : 'none';
  return new RevisionConflict({ stream, expected: expected === 'any' ? 'none' : expected, actual });
}

/** The details of an error, as bytes. */
function bytesIn(status: Status): Uint8Array {
  return status.getDetails()?.getValue_asU8() ?? new Uint8Array();
}
