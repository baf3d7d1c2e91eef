import streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import { expect } from 'chai';
import { nodeSystem } from '../../src/system/system.js';
import { LogUnavailable, SubscriptionDropped } from '../../src/eventlog/errors.js';
import { positionOf } from '../../src/eventlog/eventstoredb/read-message.js';
import { eventIn } from '../../src/eventlog/eventstoredb/read-message.js';
import { streamNames } from '../../src/eventlog/eventstoredb/read-message.js';
import { decodeReadAnswer } from '../../src/eventlog/eventstoredb/wire.js';
import type { EventLog, NewEvent, RecordedEvent } from '../../src/eventlog/port.js';
import type { ReadFate } from '../support/event-store-calls.js';
import { eventAnswer } from '../support/event-store-messages.js';
import { rejectionOf } from '../support/rejection.js';
import { untilTrue } from '../support/until-true.js';
import { all, eventsIn, idsOf, newEvent, numbered, until } from './contract-bench.js';
import { eventStoreBench, heldDeadline, MOST_MS, SHORT_MS, surely } from './eventstoredb-bench.js';
import { following } from './open-subscription.js';

const SEVENTH = { commit: { low: 7, high: 0 }, prepare: { low: 7, high: 0 } };
const NEVER = new AbortController().signal;

/** More than the sockets between hold, so that a reader is in the middle of it. */
function large(count: number): readonly NewEvent[] {
  return Array.from({ length: count }, (_, n) => newEvent({ n, text: 'x'.repeat(4_000) }));
}

async function appendAll(log: EventLog, stream: string, events: readonly NewEvent[]): Promise<void> {
  for (let from = 0; from < events.length; from += 100)
    await log.append(stream, events.slice(from, from + 100), from === 0 ? 'none' : from - 1);
}

/** A script whose first reads have these fates, and are answered afterwards. */
function fated(...fates: ReadFate[]): { read: () => ReadFate } {
  return { read: () => fates.shift() ?? 'answered' };
}

describe('EventStoreDB log: reads', () => {
  const bench = eventStoreBench();

  for (const direction of ['forwards', 'backwards'] as const) {
    it(`go on where they were when the connection is reset, ${direction}`, async () => {
      const server = await bench.server();
      const log = bench.log(server);
      const events = large(500);
      await appendAll(log, 'run-1', events);
      const read: RecordedEvent[] = [];
      for await (const event of log.readStream('run-1', { direction, max: 490 })) {
        read.push(event);
        if (read.length % 200 === 50) server.reset();
      }
      const expected = direction === 'forwards' ? events : [...events].reverse();
      expect(idsOf(read)).to.deep.equal(idsOf(expected.slice(0, 490)));
    });
  }

  it('of all streams go on where they were when the connection is reset', async () => {
    const server = await bench.server();
    const log = bench.log(server);
    const events = large(500);
    await appendAll(log, 'run-1', events);
    const read: RecordedEvent[] = [];
    for await (const event of log.readAll(null, { categories: ['run'] })) {
      read.push(event);
      if (read.length % 300 === 100) server.reset();
    }
    expect(idsOf(read)).to.deep.equal(idsOf(events));
  });

  it('wait as long as their consumer takes', async () => {
    const server = await bench.server();
    const deadline = heldDeadline();
    const log = bench.log(server, { system: deadline.system });
    await appendAll(bench.log(server), 'run-1', large(500));
    let count = 0;
    for await (const event of log.readStream('run-1')) {
      if (event.revision === 20) for (let times = 0; times < 3; times += 1) deadline.pass();
      count += 1;
    }
    expect(count).to.equal(500);
  });

  for (const fate of ['not ready', 'busy for a moment', 'reset'] as const) {
    it(`ask again when the answer is ${fate}`, async () => {
      const server = await bench.server();
      const log = bench.log(server);
      await log.append('run-1', numbered(3), 'none');
      server.behave(fated(fate, fate));
      expect(await all(log.readStream('run-1'))).to.have.length(3);
      await log.ping();
    });
  }

  it('end with the deadline when the server says nothing', async () => {
    const server = await bench.server();
    const log = bench.log(server, { deadlineMs: SHORT_MS });
    server.behave({ read: () => 'silence' });
    const calls = [
      () => all(log.readStream('run-1')),
      () => all(log.readAll(null)),
      () => log.head(),
      () => log.identity(),
      () => log.ping(),
    ];
    for (const call of calls) {
      const startedMs = performance.now();
      expect(await rejectionOf(call())).to.be.instanceOf(LogUnavailable);
      expect(performance.now() - startedMs).to.be.within(SHORT_MS - 5, MOST_MS);
    }
  });

  it('end with the deadline when the server is down, and work once it is up', async () => {
    const server = await bench.server();
    await server.kill();
    const log = bench.log(server, { deadlineMs: SHORT_MS });
    expect(await rejectionOf(log.identity())).to.be.instanceOf(LogUnavailable);
    expect(await rejectionOf(log.ping())).to.be.instanceOf(LogUnavailable);
    await server.restart();
    await log.ping();
    expect(await log.identity()).to.be.a('string');
  });

  it('end at once when access is denied', async () => {
    const server = await bench.server();
    const log = bench.log(server);
    server.behave({ read: () => 'access denied' });
    const startedMs = performance.now();
    expect(await rejectionOf(log.ping())).to.be.instanceOf(LogUnavailable);
    expect(performance.now() - startedMs).to.be.lessThan(MOST_MS);
  });

  it('ask the leader when the node they went to is none', async () => {
    const [leader, follower] = [await bench.server(), await bench.server()];
    await bench.log(leader).append('run-1', numbered(2), 'none');
    follower.behave({ leaderPort: leader.port });
    expect(await all(bench.log(follower).readStream('run-1'))).to.have.length(2);
  });

  it('do not show the mark that a deleted stream leaves', () => {
    const event = { ...newEvent(), revision: 0, position: positionOf(SEVENTH), stream: 'run-1' };
    const tombstone = eventAnswer('run-1', event, 7);
    tombstone.getEvent()?.getEvent()?.setStreamRevision('9223372036854775807');
    const read = (answer: streamsPb.ReadResp) => eventIn(decodeReadAnswer(answer.serializeBinary()), streamNames(''));
    expect(read(tombstone)?.stream).to.equal(null);
    expect(read(eventAnswer('run-1', event, 7))).to.deep.equal(event);
    expect(read(eventAnswer('run-1', { ...event, type: '$>' }, 7))?.stream).to.equal(null);
    expect(read(new streamsPb.ReadResp())).to.equal(null);
  });
});

describe('EventStoreDB log: subscriptions', () => {
  const bench = eventStoreBench();

  for (const how of ['unavailable', 'silently'] as const) {
    it(`are dropped with their last position when they end ${how}, and miss nothing from there on`, async () => {
      const server = await bench.server();
      const log = bench.log(server);
      const events = numbered(6);
      await log.append('run-1', events.slice(0, 3), 'none');
      const first = following(log, null);
      await first.waitFor((seen) => seen.some(({ kind }) => kind === 'caughtUp'));
      server.endSubscriptions(how);
      const error = await rejectionOf(first.ended);
      expect(error).to.be.instanceOf(SubscriptionDropped);
      const last = eventsIn(first.collected).at(-1)?.position ?? null;
      expect(error).to.have.deep.property('data', { last });
      await surely(log, 'run-1', events.slice(3), 2);
      const second = following(log, last);
      await second.waitFor((seen) => eventsIn(seen).length >= 3);
      await second.stop();
      expect(idsOf([...eventsIn(first.collected), ...eventsIn(second.collected)])).to.deep.equal(idsOf(events));
    });
  }

  it('are dropped when the server is killed', async () => {
    const server = await bench.server();
    const log = bench.log(server);
    const { waitFor, ended } = following(log, null);
    await waitFor((seen) => seen.some(({ kind }) => kind === 'caughtUp'));
    await server.kill();
    expect(await rejectionOf(ended)).to.be.instanceOf(SubscriptionDropped);
  });

  it('that are too slow for the server are taken up where they were, and notice nothing', async () => {
    const server = await bench.server();
    const log = bench.log(server);
    const { collected, waitFor, stop } = following(log, null);
    await waitFor((seen) => seen.some(({ kind }) => kind === 'caughtUp'));
    const events = numbered(9);
    for (const [revision, event] of events.entries()) {
      await log.append('run-1', [event], revision === 0 ? 'none' : revision - 1);
      await waitFor((seen) => eventsIn(seen).length === revision + 1);
      if (revision % 3 === 1) server.endSubscriptions('too slow');
    }
    await stop();
    expect(idsOf(eventsIn(collected))).to.deep.equal(idsOf(events));
    expect(collected.filter(({ kind }) => kind === 'caughtUp')).to.have.length(1);
  });

  it('come in pages while events come densely, and one by one again after, each event once', async () => {
    const server = await bench.server();
    // By a clock that stands still, events come as densely as can be.
    const log = bench.log(server, { system: { ...nodeSystem(), monotonicMs: () => 0 } });
    let pages = 0;
    server.behave({
      read(kind) {
        pages += kind === 'all' ? 1 : 0;
        return 'answered';
      },
    });
    const { collected, waitFor, stop } = following(log, null);
    await waitFor((seen) => seen.some(({ kind }) => kind === 'caughtUp'));
    const events: NewEvent[] = [];
    for (const stream of ['run-1', 'run-2']) {
      const before = pages;
      for (let last: number | 'none' = 'none'; pages === before;) {
        const some = numbered(100);
        last = (await log.append(stream, some, last)).revision;
        events.push(...some);
      }
      await waitFor((seen) => eventsIn(seen).length === events.length);
      await untilTrue(() => server.subscriptions() === 1);
      const single = newEvent();
      await log.append(`${stream}-after`, [single], 'none');
      events.push(single);
      await waitFor((seen) => eventsIn(seen).length === events.length);
    }
    await stop();
    expect(idsOf(eventsIn(collected))).to.deep.equal(idsOf(events));
  });

  it('give each event of a large page once, and end when their reader leaves in the middle', async () => {
    const server = await bench.server();
    const log = bench.log(server, { system: { ...nodeSystem(), monotonicMs: () => 0 } });
    const events = numbered(1_400);
    const seen: string[] = [];
    let appended = Promise.resolve();
    for await (const followed of log.subscribe(null, { signal: NEVER })) {
      if (followed.kind === 'caughtUp') appended = appendAll(log, 'run-1', events);
      if (followed.kind !== 'event') continue;
      seen.push(followed.event.id);
      // From here on it is read in pages: the next one finds all the rest.
      if (seen.length === 150) await appended;
      if (seen.length % 100 === 0) await new Promise(setImmediate);
      if (seen.length === 1_250) break;
    }
    expect(seen).to.deep.equal(idsOf(events).slice(0, 1_250));
    await untilTrue(() => server.subscriptions() === 0);
  });

  it('begin where their log was named, whatever others had appended to the server before', async () => {
    const server = await bench.server();
    await appendAll(bench.log(server, { prefix: 'a' }), 'run-1', numbered(500));
    const places: number[] = [];
    server.behave({
      read(kind, from) {
        if (kind !== 'stream') places.push(from);
        return 'answered';
      },
    });
    const log = bench.log(server, { prefix: 'b' });
    const { collected, waitFor, stop } = following(log, null);
    await waitFor((seen) => seen.some(({ kind }) => kind === 'caughtUp'));
    await log.append('run-1', numbered(3), 'none');
    await waitFor((seen) => eventsIn(seen).length === 3);
    await stop();
    expect(await all(log.readAll(null))).to.have.length(3);
    expect(eventsIn(collected)).to.have.length(3);
    for (const from of places) expect(from === 0 || from > 500, String(from)).to.equal(true);
    expect(places.filter((from) => from > 500)).to.have.length(2);
  });

  it('do not take more from the server than their consumer does', async () => {
    const server = await bench.server();
    const log = bench.log(server);
    const events = large(2_000);
    await appendAll(log, 'run-1', events);
    const ids: string[] = [];
    for await (const followed of log.subscribe(null, { signal: NEVER })) {
      if (followed.kind === 'caughtUp') break;
      if (followed.kind === 'event') ids.push(followed.event.id);
      if (ids.length % 500 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    expect(ids).to.deep.equal(idsOf(events));
  });

  it('are ended at the server when they are left, and when their signal comes', async () => {
    const server = await bench.server();
    const log = bench.log(server);
    await log.append('run-1', numbered(3), 'none');
    await until(log.subscribe(null, { signal: NEVER }), (seen) => seen.length === 2);
    await untilTrue(() => server.subscriptions() === 0);
    const { waitFor, stop } = following(log, null);
    await waitFor((seen) => seen.some(({ kind }) => kind === 'caughtUp'));
    expect(server.subscriptions()).to.equal(1);
    await stop();
    await untilTrue(() => server.subscriptions() === 0);
  });

  it('wait for a server that comes up in time, and are dropped when none does', async () => {
    const server = await bench.server();
    await server.kill();
    const dropped = await rejectionOf(
      all(bench.log(server, { deadlineMs: SHORT_MS }).subscribe(null, { signal: NEVER })),
    );
    expect(dropped).to.be.instanceOf(SubscriptionDropped);
    expect(dropped).to.have.deep.property('data', { last: null });
    const log = bench.log(server);
    const { waitFor, stop } = following(log, null);
    await server.restart();
    await waitFor((seen) => seen.some(({ kind }) => kind === 'caughtUp'));
    await stop();
  });

  it('are all served, beside other calls, even beyond the streams that one socket allows', async () => {
    const server = await bench.server();
    const log = bench.log(server);
    await log.append('run-1', [newEvent()], 'none');
    const readers = Array.from({ length: 120 }, () => new AbortController());
    let caughtUp = 0;
    const subscribed = readers.map(async ({ signal }) => {
      for await (const { kind } of log.subscribe(null, { signal })) if (kind === 'caughtUp') caughtUp += 1;
    });
    await untilTrue(() => caughtUp === subscribed.length);
    await log.append('run-1', [newEvent()], 0);
    expect(server.connections()).to.equal(2);
    for (const reader of readers) reader.abort();
    await Promise.all(subscribed);
  });

  it('are dropped when the server says nothing at all', async () => {
    const server = await bench.server();
    server.behave({ read: () => 'silence' });
    const log = bench.log(server, { deadlineMs: SHORT_MS });
    expect(await rejectionOf(following(log, null).ended)).to.be.instanceOf(SubscriptionDropped);
  });

  it('end by their signal while there is no server', async () => {
    const server = await bench.server();
    await server.kill();
    const { stop } = following(bench.log(server), null);
    await stop();
  });

  it('are told how far they have come past events of others', async () => {
    const server = await bench.server();
    const log = bench.log(server);
    for (let n = 0; n < 3; n += 1) await log.append(`document-${n}`, numbered(700), 'none');
    const { collected, waitFor, stop } = following(log, null, ['run']);
    await waitFor((seen) => seen.some(({ kind }) => kind === 'checkpoint'));
    await stop();
    expect(eventsIn(collected)).to.deep.equal([]);
  });

  it('of a category are told how far they have come past one whose name begins the same', async () => {
    const server = await bench.server();
    const log = bench.log(server);
    for (let n = 0; n < 2; n += 1) await log.append(`runs-${n}`, numbered(700), 'none');
    const { collected, waitFor, stop } = following(log, null, ['run']);
    await waitFor((seen) => seen.filter(({ kind }) => kind === 'checkpoint').length >= 1);
    await stop();
    expect(eventsIn(collected)).to.deep.equal([]);
  });
});
