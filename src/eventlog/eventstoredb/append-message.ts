/** Encodes appends for the wire and interprets the server's answers. */
import { AppendInvalid, AppendOutcomeUnknown, AppendTooLarge, LogUnavailable, RevisionConflict } from '../errors.js';
import { elementAt } from '../../system/element.js';
import type { Appended, ExpectedRevision, NewEvent } from '../port.js';
import { hex, positionOf } from './position.js';
import type { AppendAnswer, AppendRequest } from './wire.js';
import { decodeBadRequest, decodeMaximumAppendSizeExceeded, decodeWrongExpectedVersion, narrow } from './wire.js';

/** An append that has passed its checks. */
export interface CheckedAppend {
  readonly stream: string;
  readonly events: readonly NewEvent[];
  readonly expected: ExpectedRevision | 'any';
  /** Each event's metadata as JSON. */
  readonly metadata: readonly string[];
}

/** An append to a stream by its server name. Without a deadline: the server's own, 2 s, needs no common clock. */
export function appendMessage(
  correlationId: string,
  serverStream: string,
  { events, expected, metadata }: CheckedAppend,
): AppendRequest {
  const stream = { name: serverStream };
  return {
    correlationId: { string: correlationId },
    options: typeof expected === 'number' ? { stream, position: expected } : { stream, ...NOT_AT[expected] },
    proposed: events.map(({ id, type, data }, index) => ({
      id: { string: id },
      metadata: { type, 'content-type': 'application/json' },
      customMetadata: elementAt(metadata, index),
      data,
    })),
    isFinal: true,
  };
}

const NOT_AT = { none: { noStream: {} }, any: { any: {} } } as const;

/** The id of the append that an answer belongs to. */
export function correlationIdOf({ correlationId }: AppendAnswer): string {
  const structured = correlationId?.structured ?? null;
  if (structured === null) return correlationId?.string ?? '';
  // To an id sent as text the server answers with two signed 64-bit numbers.
  return (hex(structured.most) + hex(structured.least)).replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}

/** The outcome of an append; unknown where the server's answer does not exclude that it was written. */
export function outcomeOf({ success, error }: AppendAnswer, { stream, expected }: CheckedAppend): Appended | Error {
  const position = success?.position ?? null;
  if (success !== null && position !== null)
    return { revision: narrow(success.revision), position: positionOf(position) };
  const { typeUrl, value } = error?.details ?? { typeUrl: '', value: new Uint8Array() };
  switch (typeUrl.slice(typeUrl.lastIndexOf('/') + 1)) {
    case 'event_store.client.WrongExpectedVersion':
      return new RevisionConflict({
        stream,
        expected: expected === 'any' ? 'none' : expected,
        actual: actualIn(value),
      });
    case 'event_store.client.StreamDeleted':
      return new AppendInvalid({ stream, reason: 'the stream was deleted' });
    case 'event_store.client.MaximumAppendSizeExceeded': {
      const { limit } = decodeMaximumAppendSizeExceeded(value);
      return new AppendTooLarge({ stream, bytes: limit + 1, limit });
    }
    case 'event_store.client.BadRequest':
      return new AppendInvalid({ stream, reason: decodeBadRequest(value).message });
    case 'event_store.client.AccessDenied':
      return new LogUnavailable({ cause: new Error(`The server denies access to "${stream}"`) });
    default:
      return new AppendOutcomeUnknown({ stream }, { cause: new Error(error?.message ?? 'The answer is empty') });
  }
}

function actualIn(bytes: Uint8Array): 'none' | number {
  const { revision, noStream } = decodeWrongExpectedVersion(bytes);
  return noStream === null ? narrow(revision) : 'none';
}
