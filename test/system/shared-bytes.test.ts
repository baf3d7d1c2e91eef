import { expect } from 'chai';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { WebSocket, WebSocketServer } from 'ws';
import { countedResponse } from '../../src/http/answer.js';
import type { EventSink } from '../../src/http/event-stream.js';
import { ANYONE } from '../../src/keys/caller.js';
import { OpenCount } from '../../src/system/open-count.js';
import { encodeEvent, eventStream } from '../../src/http/event-stream.js';
import { elementAt } from '../../src/system/element.js';
import type { Holder } from '../../src/system/async/shared-bytes.js';
import { SharedBytes } from '../../src/system/async/shared-bytes.js';
import { SendQueue } from '../../src/ws/send-queue.js';
import { openEventStream } from '../support/event-stream-client.js';
import { manualSystem } from '../support/manual-system.js';
import { untilTrue } from '../support/until-true.js';

const MAX_IN_ALL = 1_000_000;
const TEXT = 'x'.repeat(20_000);
/** Messages per round for each connection, alternately an event stream and a socket. */
const WEIGHTS = [6, 5, 4, 3];
/** More rounds than fill the buffers of the operating system. */
const MAX_ROUNDS = 2_000;

type Kind = 'stream' | 'socket';

describe('Unsent bytes of event streams and sockets', () => {
  it('have one limit together, which cuts off the reader with the most unsent bytes', async () => {
    const system = manualSystem();
    const bound = new SharedBytes({ maxInAll: MAX_IN_ALL });
    const known = new Set<Holder>();
    const cut: { readonly reader: Holder; readonly kind: Kind }[] = [];
    /** The limit, which also records the readers that it counts and cuts off. */
    const boundOf = (kind: Kind): Pick<SharedBytes, 'update' | 'forget'> => ({
      forget: (reader) => bound.forget(reader),
      update(reader) {
        const cutOff = reader.cutOff.bind(reader);
        if (!known.has(reader))
          reader.cutOff = () => {
            cut.push({ reader, kind });
            known.delete(reader);
            cutOff();
          };
        known.add(reader);
        bound.update(reader);
      },
    });
    const sends: ((text: string) => void)[] = [];
    const onFault = (_: string, error: unknown): never => expect.fail(String(error));
    const counting = { system, unsent: boundOf('stream') };
    const server = createServer({ ServerResponse: countedResponse(counting) }, (_, response) => {
      const deliver = (sink: EventSink): Promise<void> => {
        sink.begin();
        sends.push((text) => void sink.send(encodeEvent(null, 'Large', { text })));
        return new Promise((resolve) => sink.signal.addEventListener('abort', () => resolve()));
      };
      const http = {
        ...counting,
        onFault,
        streams: new OpenCount(),
        authenticator: { watch: () => () => undefined },
        withinDeadline: <T>(work: Promise<T>): Promise<T> => work,
      };
      void eventStream({ http, response, caller: ANYONE, deliver }).then((body) => body.pipe(response));
    });
    const sendQueue = new SendQueue({ system, unsent: boundOf('socket') });
    const sockets = new WebSocketServer({ server, perMessageDeflate: false });
    sockets.on('connection', (socket, { socket: connection }) => {
      sends.push((text) => void sendQueue.send({ socket, connection }, [{ event: 'error', message: text }]));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    for (const [index] of WEIGHTS.entries()) {
      if (index % 2 === 0) await openEventStream(`http://${address}`, '/').pause();
      else
        new WebSocket(`ws://${address}`).on('open', function () {
          this.pause();
        });
      await untilTrue(() => sends.length > index);
    }

    const unsent = (): readonly (readonly [Holder, number])[] => [...known].map((reader) => [reader, reader.bytes()]);
    const isCut = (kind: Kind): boolean => cut.some((each) => each.kind === kind);
    for (let round = 0; round < MAX_ROUNDS && !(isCut('stream') && isCut('socket')); round += 1) {
      for (const [index, weight] of WEIGHTS.entries()) {
        for (let times = 0; times < weight; times += 1) {
          const [before, cutBefore] = [new Map(unsent()), cut.length];
          elementAt(sends, index)(TEXT);
          expect(unsent().reduce((sum, [, bytes]) => sum + bytes, 0)).to.be.at.most(MAX_IN_ALL);
          for (const { reader } of cut.slice(cutBefore))
            expect(before.get(reader)).to.be.at.least(Math.max(...before.values()) - 2 * TEXT.length);
        }
      }
      await new Promise(setImmediate);
    }
    expect([isCut('stream'), isCut('socket')]).to.deep.equal([true, true]);
    system.advance(2_000);
    for (const client of sockets.clients) client.terminate();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
});
