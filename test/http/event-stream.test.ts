import { expect } from 'chai';
import type { ServerResponse } from 'node:http';
import { createServer, get } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { EventSink } from '../../src/http/event-stream.js';
import { UnsentBytes } from '../../src/system/async/unsent-bytes.js';
import { eventStream } from '../../src/http/event-stream.js';
import { manualSystem } from '../support/manual-system.js';
import { untilTrue } from '../support/until-true.js';

const READERS = 3;
const DATA = JSON.stringify('x'.repeat(100_000));

describe('An event stream', () => {
  it('is encoded once for all, and written before the telling goes on', async () => {
    const open: { readonly response: ServerResponse; readonly sink: EventSink }[] = [];
    const onFault = (): never => expect.fail('Nothing fails');
    const http = { system: manualSystem(), unsent: new UnsentBytes(), onFault };
    const server = createServer((_, response) => {
      const tell = (sink: EventSink): Promise<void> => {
        open.push({ response, sink });
        return new Promise((resolve) => sink.signal.addEventListener('abort', () => resolve()));
      };
      eventStream({ http, response, tell }).pipe(response);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const taken = Array.from({ length: READERS }, () => ({ text: '' }));
    for (const each of taken)
      get({ port: (server.address() as AddressInfo).port }, (reply) =>
        reply.setEncoding('utf8').on('data', (text: string) => (each.text += text)),
      ).on('error', () => undefined);
    await untilTrue(() => taken.every(({ text }) => text.includes('retry:')));

    let encodings = 0;
    const event = {
      id: '7',
      type: 'Told',
      get data() {
        encodings += 1;
        return DATA;
      },
    };
    for (const { response, sink } of open) {
      const before = response.socket?.bytesWritten ?? 0;
      void sink.send(event);
      expect(response.socket?.bytesWritten).to.be.greaterThan(before + DATA.length);
      expect(response.socket?.writableCorked).to.equal(0);
    }
    expect(encodings).to.equal(1);
    await untilTrue(() => taken.every(({ text }) => text.endsWith(`id: 7\nevent: Told\ndata: ${DATA}\n\n`)));
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
});
