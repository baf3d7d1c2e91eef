/** Validates events of the log when they become events of the domain. */
import { present } from '../system/element.js';
import type { EventValidator } from '../generated/recorded-events.js';

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
