import { expect } from 'chai';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { countedResponse } from '../../src/http/answer.js';
import type { EventSink } from '../../src/http/event-stream.js';
import { SharedBytes } from '../../src/system/async/shared-bytes.js';
import { encodeEvent, eventStream } from '../../src/http/event-stream.js';
import { ANYONE } from '../../src/keys/caller.js';
import { elementAt } from '../../src/system/element.js';
import { OpenCount } from '../../src/system/open-count.js';
import { openEventStream } from '../support/event-stream-client.js';
import { manualSystem } from '../support/manual-system.js';
import { untilTrue } from '../support/until-true.js';

/** The time between beats in milliseconds, and more beats than a client may miss. */
const [BEAT_MS, MAX_BEATS] = [15_000, 20];
const EVENT = encodeEvent(null, 'Large', { text: 'x'.repeat(100_000) });
const withinDeadline = <T>(work: Promise<T>): Promise<T> => work;

describe('An event stream', () => {
  it('disconnects a client that reads nothing, but not a slow one', async () => {
    const system = manualSystem();
    const open: EventSink[] = [];
    const http = {
      system,
      unsent: new SharedBytes(),
      onFault: () => expect.fail('Nothing fails'),
      withinDeadline,
      streams: new OpenCount(),
      authenticator: { watch: () => () => undefined },
    };
    const server = createServer({ ServerResponse: countedResponse(http) }, (_, response) => {
      const deliver = (sink: EventSink): Promise<void> => {
        sink.begin();
        open.push(sink);
        return new Promise((resolve) => sink.signal.addEventListener('abort', () => resolve()));
      };
      void eventStream({ http, response, caller: ANYONE, deliver }).then((body) => body.pipe(response));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const clients = [openEventStream(url, '/'), openEventStream(url, '/')] as const;
    for (const [index, client] of clients.entries()) {
      await client.pause();
      await untilTrue(() => open.length === index + 1);
    }
    const [stalled, slow] = [elementAt(open, 0), elementAt(open, 1)];
    await Promise.all([heldUp(stalled), heldUp(slow)]);
    for (let beats = 0; beats < MAX_BEATS && !stalled.signal.aborted; beats += 1) {
      const before = clients[1].events.length;
      clients[1].resume();
      await untilTrue(() => clients[1].events.length > before);
      await clients[1].pause();
      await heldUp(slow);
      system.advance(BEAT_MS);
      await new Promise(setImmediate);
    }
    expect([stalled.signal.aborted, slow.signal.aborted]).to.deep.equal([true, false]);
    // The beat of the slow client, and the check whether it takes anything.
    expect(system.timers()).to.equal(2);
    for (const client of clients) client.leave();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
});

/** Sends until bytes stay queued because the client reads nothing and the buffers are full. */
async function heldUp(sink: EventSink): Promise<void> {
  for (let isHeld = false; !isHeld;) {
    const taken = sink.send(EVENT).then(() => true);
    isHeld = !(await Promise.race([taken, turnsLater()]));
  }
}

async function turnsLater(): Promise<false> {
  for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate);
  return false;
}
