/** Validates events of the log when they become events of the domain. */
import type { RecordedEvent } from '../eventlog/port.js';
import type { EventValidator, EventValidators } from '../generated/recorded-events.js';
import { present } from '../system/element.js';
import type { ExportedEvent, SealedEvent } from './hash-chain.js';
import { exportedOf } from './hash-chain.js';

/**
 * Why an event is invalid for its stream: an unknown type, or data that fails the schema of its type, or null if it is
 * valid.
 */
export function whyInvalid(
  { type, data }: { readonly type: string; readonly data: unknown },
  validators: Readonly<Record<string, EventValidator<unknown>>>,
): string | null {
  const fits = Object.hasOwn(validators, type) ? validators[type] : undefined;
  if (fits === undefined) return `${type} is no event of this stream`;
  if (fits(data)) return null;
  const { instancePath, message } = present(fits.errors?.[0], 'reason of the validator');
  return `the data of ${type} does not fit its schema: ${instancePath === '' ? 'it' : instancePath} ${message}`;
}

/** An event of one of the types in `Facts`, before it is recorded. */
export type FactOf<Facts> = {
  [T in keyof Facts & string]: { readonly type: T; readonly data: Facts[T] & object };
}[keyof Facts & string];

/** A recorded event as the domain reads it. */
type EventOf<Facts> = ExportedEvent & SealedEvent<FactOf<Facts>>;

/**
 * A function that reads the events of one kind of stream.
 *
 * @param corrupt the error that it throws for an event with another type or other data
 */
export function eventReader<Facts>(
  validators: EventValidators<Facts>,
  corrupt: (stream: string, seq: number, cause: unknown) => Error,
): (recorded: RecordedEvent) => EventOf<Facts> {
  function assertEvent(event: ExportedEvent): asserts event is EventOf<Facts> {
    const misfit = whyInvalid(event, validators);
    if (misfit !== null) throw new Error(misfit);
  }
  return (recorded) => {
    try {
      const event = exportedOf(recorded);
      assertEvent(event);
      return event;
    } catch (error) {
      throw corrupt(recorded.stream, recorded.revision, error);
    }
  };
}
