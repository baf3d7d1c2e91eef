/** Streams without an end. Each item has a cursor from which another stream can continue, on any instance. */
import type { StreamedMessage } from './event-stream.js';
import { reader, streamed } from './event-stream.js';
import type { Api, ApiRequest, CallOptions } from './http.js';

/**
 * Items for `for await`, until the loop ends or the signal aborts. A second loop continues after the last item. One loop at
 * a time.
 */
export interface CursorStream<T> extends AsyncIterable<T> {
  /** The `from` with which another stream continues, or null before the first item of a stream without `from`. */
  readonly cursor: string | null;
}

export interface CursorRequest extends Pick<ApiRequest, 'path' | 'query'>, CallOptions {
  /** A cursor, `head`, or null for the first event. */
  readonly from: string | null;
}

/** @param read returns the item of a message, or null to skip the message */
export function cursorStream<T>(
  api: Api,
  { path, query = {}, from, signal }: CursorRequest,
  read: (message: StreamedMessage) => T | null,
): CursorStream<T> {
  let cursor = from;
  let isBegun = false;
  const events = (reading: AbortSignal): AsyncGenerator<T, void> =>
    streamed(api, {
      path,
      query: { ...query, from },
      after: isBegun ? cursor : null,
      signal: reading,
      read,
      onPlace(place) {
        cursor = place;
        isBegun = true;
      },
    });
  return {
    get cursor() {
      return cursor;
    },
    [Symbol.asyncIterator]: () => reader(events, signal),
  };
}
