/** The checks every log makes before it sends an append: one rule for all adapters. */
import { AppendInvalid, AppendTooLarge } from './errors.js';
import { elementAt } from '../system/element.js';
import type { ExpectedRevision, NewEvent } from './port.js';
import { MAX_APPEND_BYTES } from './port.js';

/**
 * Stream names and event types: 1 to 512 characters, no control characters, no leading `$` (EventStoreDB's own
 * streams).
 */
const NAME = /^[^$\p{Cc}][^\p{Cc}]{0,511}$/u;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/**
 * Checks an append's form and size; returns each event's metadata as JSON text. Cheap, because it runs on the hot
 * path: of the data only the first character is checked; that it is valid JSON is the caller's responsibility.
 *
 * @throws {AppendInvalid} no events, an id twice or no UUID, an unusable name, data that cannot be a JSON object
 * @throws {AppendTooLarge} more than MAX_APPEND_BYTES
 */
export function checkAppend(
  stream: string,
  events: readonly NewEvent[],
  expected: ExpectedRevision,
): readonly string[] {
  const fault = faultOfAppend(stream, events, expected);
  if (fault !== null) throw new AppendInvalid({ stream, reason: fault });
  const metadata = events.map((event) => JSON.stringify(event.metadata));
  checkSize(stream, events, metadata);
  return metadata;
}

function faultOfAppend(stream: string, events: readonly NewEvent[], expected: ExpectedRevision): string | null {
  if (!isName(stream)) return 'the stream name is unusable';
  if (expected !== 'none' && !(Number.isSafeInteger(expected) && expected >= 0))
    return 'no such revision can be expected';
  if (events.length === 0) return 'it holds no events';
  for (const event of events) {
    if (!UUID.test(event.id)) return `"${event.id}" is no lower-case UUID`;
    if (!isName(event.type)) return `the type of event ${event.id} is unusable`;
    if (!event.data.startsWith('{') || !event.data.isWellFormed())
      return `the data of event ${event.id} is no JSON object`;
  }
  return hasEqualIds(events) ? 'two of its events have the same id' : null;
}

function isName(text: string): boolean {
  return NAME.test(text) && text.isWellFormed();
}

function hasEqualIds(events: readonly NewEvent[]): boolean {
  if (events.length === 1) return false;
  if (events.length === 2) return events[0]?.id === events[1]?.id;
  return new Set(events.map((event) => event.id)).size < events.length;
}

/** UTF-8 takes at most three bytes per UTF-16 code unit, so most appends need no exact count. */
function checkSize(stream: string, events: readonly NewEvent[], metadata: readonly string[]): void {
  const sizeBy = (size: (text: string) => number): number =>
    events.reduce((sum, { type, data }, at) => sum + size(type) + size(data) + size(elementAt(metadata, at)), 0);
  if (sizeBy((text) => text.length) * 3 <= MAX_APPEND_BYTES) return;
  const bytes = sizeBy((text) => Buffer.byteLength(text));
  if (bytes > MAX_APPEND_BYTES) throw new AppendTooLarge({ stream, bytes, limit: MAX_APPEND_BYTES });
}
