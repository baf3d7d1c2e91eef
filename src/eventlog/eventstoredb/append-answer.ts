/** The meaning of the server's answer to an append. */
import sharedPb from '@eventstore/db-client/generated/shared_pb.js';
import type { Status } from '@eventstore/db-client/generated/status_pb.js';
import { AppendInvalid, AppendTooLarge, LogDenied, RevisionConflict } from '../errors.js';
import type { Appended } from '../port.js';
import type { AppendAnswer, CheckedAppend } from './streams-service.js';

/**
 * The result in an answer.
 *
 * @param redact removes the credentials from the server's text
 * @throws {RevisionConflict | AppendInvalid | AppendTooLarge | LogDenied} certainly not written
 * @throws {Error} of another class: the append may be written
 */
export function appendedIn(answer: AppendAnswer, append: CheckedAppend, redact: (text: string) => string): Appended {
  switch (answer.kind) {
    case 'written':
      return { revision: answer.revision, position: answer.position };
    case 'refused':
      throw refusalIn(answer.status, append, redact);
    case 'unknown':
      throw new Error('The answer has no position');
  }
}

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
