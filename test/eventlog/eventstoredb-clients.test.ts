import { once } from 'node:events';
import type { AppendToStreamOptions, EventData } from '@eventstore/db-client';
import { NO_STREAM } from '@eventstore/db-client';
import { expect } from 'chai';
import { Clients } from '../../src/eventlog/eventstoredb/clients.js';
import { addressIn } from '../../src/eventlog/eventstoredb/connection-string.js';
import { nodeSystem } from '../../src/system/system.js';
import type { AppendFate } from '../support/event-store-calls.js';
import { rejectionOf } from '../support/rejection.js';
import { untilTrue } from '../support/until-true.js';
import { newEvent } from './contract-bench.js';
import { eventStoreBench, SHORT_MS } from './eventstoredb-bench.js';

function events(): EventData[] {
  const { id, type, metadata } = newEvent();
  return [{ id, type, metadata, contentType: 'application/json', data: {} }];
}

function howOf({ credentials }: Clients): AppendToStreamOptions {
  return { expectedRevision: NO_STREAM, credentials };
}

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
    let fail = (): void => undefined;
    const failed = new Promise<AppendFate>((resolve) => (fail = () => resolve('not ready')));
    let isUnderWay = false;
    server.behave({
      append() {
        isUnderWay = true;
        return failed;
      },
    });
    const late = rejectionOf(client.appendToStream('run-1', events(), howOf(clients)));
    await untilTrue(() => isUnderWay);
    let isSearched = false;
    server.behave({
      read: () => 'not ready',
      gossip() {
        isSearched = true;
        return false;
      },
    });
    // The client closes the channel, while the append continues on it.
    await once(client.readStream('run-1'), 'close').catch(() => undefined);
    const search = rejectionOf(client.appendToStream('run-2', events(), howOf(clients)));
    await untilTrue(() => isSearched);
    fail();
    expect(await late).to.be.instanceOf(Error);
    expect(await search).to.be.instanceOf(Error);
    await clients.close(nodeSystem(), SHORT_MS);
  });

  it('rejects an append that begins while its channel closes', async () => {
    const server = await bench.server();
    const clients = new Clients(addressIn(server.url));
    const { client } = clients.borrow();
    server.behave({ read: () => 'not ready' });
    // The client closes the channel a moment after the read has failed.
    const outcome = new Promise((resolve) => {
      client
        .readStream('run-1')
        .on('error', () => resolve(rejectionOf(client.appendToStream('run-1', events(), howOf(clients)))));
    });
    expect(await outcome).to.be.instanceOf(Error);
    await clients.close(nodeSystem(), SHORT_MS);
  });
});
