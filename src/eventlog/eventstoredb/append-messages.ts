/** An append, and the meaning of the server's answer to it. */
import sharedPb from '@eventstore/db-client/generated/shared_pb.js';
import type { Status } from '@eventstore/db-client/generated/status_pb.js';
import { AppendInvalid, AppendTooLarge, LogDenied, RevisionConflict } from '../errors.js';
import type { Appended, ExpectedRevision, NewEvent } from '../port.js';
import type { AppendAnswer } from './streams-service.js';

/** An append that has passed its checks. */
export interface CheckedAppend {
  readonly stream: string;
  readonly events: readonly NewEvent[];
  /** The metadata of each event as JSON text. */
  readonly metadata: readonly string[];
  readonly expected: ExpectedRevision | 'any';
}

/**
 * The result in an answer.
 *
 * @param redact removes the credentials from the server's text
 * @throws {RevisionConflict | AppendInvalid | AppendTooLarge | LogDenied} certainly not written
 * @throws {Error} of another class: the append may be written
 */
export function appendedIn(
  { written, refusal }: AppendAnswer,
  append: CheckedAppend,
  redact: (text: string) => string,
): Appended {
  if (refusal !== null) throw refusalIn(refusal, append, redact);
  if (written === null) throw new Error('The answer has no position');
  return written;
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
