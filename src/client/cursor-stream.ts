/** Streams that have no end of their own: each event brings a cursor to go on from, on any instance. */
import type { StreamedMessage } from './event-stream.js';
import { reader, streamed } from './event-stream.js';
import type { Api, ApiRequest, CallOptions } from './http.js';

/**
 * Events as they come, for `for await`, until the loop is left or the signal aborts. Iterated again, it goes on where it
 * was left. One reader at a time.
 */
export interface CursorStream<T> extends AsyncIterable<T> {
  /**
   * Where another stream can continue, as its `from`; null: nothing has come yet, and this one began at the first
   * event.
   */
  readonly cursor: string | null;
}

export interface CursorRequest extends Pick<ApiRequest, 'path' | 'query'>, CallOptions {
  /** A cursor, or `head`; null: the first event. */
  readonly from: string | null;
}

/** @param read makes an item of a message; null: the message is skipped */
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
