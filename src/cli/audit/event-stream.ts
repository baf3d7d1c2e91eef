/** Events out of the bytes of a service's event stream (WHATWG HTML, section 9.2), as far as this service writes them. */
import { isEvent } from '../../audit/export.js';
import type { ExportedEvent } from '../../log/chain.js';
import { jsonValue, ServiceRefused } from '../rest.js';

/** Longest event taken, in characters; as long as a line of an export. */
const MAX_EVENT_CHARS = 4 * 1024 * 1024;

/** What comes whole; comments and the rest of a stream that breaks off are left out. @throws {ServiceRefused} */
export async function* eventsStreamed(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<ExportedEvent> {
  const decoder = new TextDecoder();
  let begun = '';
  for await (const piece of pieces) {
    const blocks = (begun + decoder.decode(piece, { stream: true })).split('\n\n');
    begun = blocks.pop() ?? '';
    if (begun.length > MAX_EVENT_CHARS) throw noEvent();
    for (const block of blocks) {
      // By line feeds alone: U+2028 and U+2029, which texts may hold, end no line here.
      const data = /(?:^|\n)data: ([^\n]*)/.exec(block)?.[1];
      if (data !== undefined) yield eventIn(data);
    }
  }
}

function eventIn(data: string): ExportedEvent {
  const event = jsonValue(data);
  if (isEvent(event)) return event;
  throw noEvent();
}

function noEvent(): ServiceRefused {
  return new ServiceRefused({ status: 200, detail: 'The service streams something that is no event' });
}
