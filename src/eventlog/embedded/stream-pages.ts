import type { RecordedEvent, StreamRange } from '../port.js';
import { eventsOn } from './messages.js';
import type { Page, PageQuery } from './messages.js';

/** The events of a range of a stream, read page by page in its order; a missing stream has none. */
export async function* streamPages(
  page: (query: PageQuery) => Page | Promise<Page>,
  stream: string,
  range: StreamRange,
): AsyncIterable<RecordedEvent> {
  const backwards = range.direction === 'backwards';
  let left = range.max ?? Number.MAX_SAFE_INTEGER;
  for (let from: number | null = range.from ?? null; left > 0;) {
    const found: Page = await page({ of: 'stream', stream, from, backwards, max: left });
    const events = eventsOn(found);
    yield* events;
    left -= events.length;
    if (found.end === null) return;
    from = backwards ? found.end - 1 : found.end + 1;
  }
}
