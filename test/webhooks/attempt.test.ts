import { expect } from 'chai';
import { positionFromText } from '../../src/eventlog/port.js';
import { attempt } from '../../src/webhooks/attempt.js';
import { newDelivery } from '../../src/webhooks/deliveries.js';
import { httpPost } from '../../src/webhooks/post.js';
import type { Webhook } from '../../src/webhooks/state.js';
import { jumpingSystem } from '../support/jumping-system.js';
import { rawReceiver } from '../support/raw-receiver.js';

describe('A request to a receiver', () => {
  it('is cut off if the receiver has answered and does not take the rest of the request', async () => {
    const system = jumpingSystem();
    const bodyBytes = 64 * 1024 * 1024;
    let received = 0;
    const raw = await rawReceiver((socket) => {
      socket.pause().write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
    });
    const post = httpPost({
      resolve: () => Promise.resolve([{ address: '127.0.0.1', family: 4 }]),
      after: system.after,
    });
    const request = { url: new URL(raw.url), headers: {}, body: '.'.repeat(bodyBytes), accepts: () => true };
    const { status } = await post({ ...request, signal: new AbortController().signal });
    expect(status).to.equal(200);
    system.jump(1_000);
    const [socket] = raw.sockets;
    const ended = new Promise<void>((resolve) => socket?.on('close', () => resolve()).on('end', () => resolve()));
    socket?.on('data', (chunk: Buffer) => (received += chunk.length)).resume();
    await ended;
    expect(received).to.be.below(bodyBytes);
    await raw.stop();
  });

  it('has a reason of whole characters when it fails, so that the result can be recorded', async () => {
    const system = jumpingSystem();
    const webhook: Webhook = {
      id: 'one',
      url: 'https://example.com/',
      types: new Set(),
      blueprintId: null,
      secret: 'whsec_AAAA',
      oldSecret: null,
      createdAt: '2026-01-01T00:00:00.000Z',
      registeredAt: positionFromText('0'),
      isDisabled: false,
      isDeleted: false,
      head: { seq: 0, id: 'one', hash: '', at: '' },
    };
    const deps = {
      system,
      accepts: () => true,
      hmac: () => '',
      messages: { bodyOf: () => Promise.resolve('{}') },
      post: () => Promise.reject(new Error(`${'x'.repeat(299)}😀 and more\n`)),
    };
    const { error } = await attempt(webhook, newDelivery('event', 'RunCompleted', { runId: 'run', seq: 0 }), {
      deps,
      signal: new AbortController().signal,
    });
    expect(error?.isWellFormed()).to.equal(true);
  });
});
