import { once } from 'node:events';
import { expect } from 'chai';
import { Clients } from '../../src/eventlog/eventstoredb/clients.js';
import { addressIn } from '../../src/eventlog/eventstoredb/connection-string.js';
import { streamNames } from '../../src/eventlog/eventstoredb/names.js';
import { streamRequest, subscribeRequest } from '../../src/eventlog/eventstoredb/read-messages.js';
import type { Position } from '../../src/eventlog/port.js';
import { nodeSystem } from '../../src/system/system.js';
import { rejectionOf } from '../support/rejection.js';
import { untilTrue } from '../support/until-true.js';
import { eventStoreBench, SHORT_MS } from './eventstoredb-bench.js';

const READ = streamRequest({ serverStream: 'run-1', direction: 'forwards', from: null, max: 1 });
const SUBSCRIBE = subscribeRequest('0'.repeat(32) as Position, streamNames(''), {});

describe('EventStoreDB log: the client', () => {
  const bench = eventStoreBench();
  /** Unhandled rejections, which would end the process of the service. */
  const unhandled: unknown[] = [];
  const note = (reason: unknown): void => void unhandled.push(reason);

  before(() => process.on('unhandledRejection', note));
  after(() => process.off('unhandledRejection', note));
  afterEach(async () => {
    await new Promise(setImmediate);
    expect(unhandled.splice(0)).to.deep.equal([]);
  });

  it('rejects nothing unhandled when a call of an old connection fails while the search for the leader does', async () => {
    const server = await bench.server();
    const at = `127.0.0.1:${server.port}`;
    const clients = new Clients(addressIn(`esdb://${at},${at}?tls=false&discoveryInterval=100`));
    const { client } = clients.borrow();
    const subscription = (await client.openRead(SUBSCRIBE)).resume();
    await untilTrue(() => server.subscriptions() === 1);
    let isSearched = false;
    server.behave({
      read: () => 'not ready',
      gossip() {
        isSearched = true;
        return false;
      },
    });
    // The client closes the channel, while the subscription continues on it.
    await rejectionOf(once((await client.openRead(READ)).resume(), 'end'));
    const search = rejectionOf(client.openRead(READ));
    await untilTrue(() => isSearched);
    const failed = rejectionOf(once(subscription, 'end'));
    server.endSubscriptions('unavailable');
    expect(await failed).to.be.instanceOf(Error);
    expect(await search).to.be.instanceOf(Error);
    await clients.close(nodeSystem(), SHORT_MS);
  });

  it('rejects a call that begins while its channel closes', async () => {
    const server = await bench.server();
    const clients = new Clients(addressIn(server.url));
    const { client } = clients.borrow();
    server.behave({ read: () => 'not ready' });
    // The client closes the channel a moment after the read has failed.
    const read = (await client.openRead(READ)).resume();
    const outcome = new Promise((resolve) => {
      read.on('error', () => resolve(rejectionOf(client.openAppends())));
    });
    expect(await outcome).to.be.instanceOf(Error);
    await clients.close(nodeSystem(), SHORT_MS);
  });
});
