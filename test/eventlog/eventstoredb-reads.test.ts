import { expect } from 'chai';
import protobuf from 'google-protobuf';
import { LogUnavailable, SubscriptionDropped } from '../../src/eventlog/errors.js';
import { SERVER_BEGIN, eventIn, positionOf, streamNames } from '../../src/eventlog/eventstoredb/names.js';
import type { ServerEvent } from '../../src/eventlog/eventstoredb/names.js';
import { readAnswerIn } from '../../src/eventlog/eventstoredb/streams-service.js';
import type { EventLog, NewEvent, RecordedEvent } from '../../src/eventlog/port.js';
import type { ReadFate } from '../support/event-store-calls.js';
import { rejectionOf } from '../support/rejection.js';
import { untilTrue } from '../support/until-true.js';
import { all, eventsIn, idsOf, newEvent, numbered, until } from './contract-bench.js';
import { eventStoreBench, heldDeadline, MOST_MS, SHORT_MS, surely } from './eventstoredb-bench.js';
import { following } from './open-subscription.js';

const NEVER = new AbortController().signal;
const SERVER_EVENT: ServerEvent = {
  serverStream: 'run-1',
  id: 'an id',
  type: 'Written',
  data: '{}',
  metadata: '{}',
  revision: 0,
  position: SERVER_BEGIN,
  recordedAtMs: 0,
};

/** More events than the sockets buffer, so that the reader is still in the middle. */
function large(count: number): readonly NewEvent[] {
  return Array.from({ length: count }, (_, n) => newEvent({ n, text: 'x'.repeat(4_000) }));
}

async function appendAll(log: EventLog, stream: string, events: readonly NewEvent[]): Promise<void> {
  for (let from = 0; from < events.length; from += 100)
    await log.append(stream, events.slice(from, from + 100), from === 0 ? 'none' : from - 1);
}

/** A script that sets the fates of the first reads and answers all later ones. */
function fated(...fates: ReadFate[]): { read: () => ReadFate } {
  return { read: () => fates.shift() ?? 'answered' };
}

describe('EventStoreDB log: reads', () => {
  const bench = eventStoreBench();

  for (const direction of ['forwards', 'backwards'] as const) {
    it(`of a stream resume after a reset of the connection, ${direction}`, async () => {
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

  it('of all streams resume after a reset of the connection', async () => {
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

  it('set no deadline for a slow consumer', async () => {
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
    it(`are repeated when the answer is ${fate}`, async () => {
      const server = await bench.server();
      const log = bench.log(server);
      await log.append('run-1', numbered(3), 'none');
      server.behave(fated(fate, fate));
      expect(await all(log.readStream('run-1'))).to.have.length(3);
      await log.ping();
    });
  }

  it('fail at the deadline when the server is silent', async () => {
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

  it('fail at the deadline while the server is down, and succeed once it is up', async () => {
    const server = await bench.server();
    await server.kill();
    const log = bench.log(server, { deadlineMs: SHORT_MS });
    expect(await rejectionOf(log.identity())).to.be.instanceOf(LogUnavailable);
    expect(await rejectionOf(log.ping())).to.be.instanceOf(LogUnavailable);
    await server.restart();
    await log.ping();
    expect(await log.identity()).to.be.a('string');
  });

  it('fail at once when access is denied', async () => {
    const server = await bench.server();
    const log = bench.log(server);
    server.behave({ read: () => 'access denied' });
    const startedMs = performance.now();
    expect(await rejectionOf(log.ping())).to.be.instanceOf(LogUnavailable);
    expect(performance.now() - startedMs).to.be.lessThan(MOST_MS);
  });

  it('go to the leader when their node is a follower', async () => {
    const [leader, follower] = [await bench.server(), await bench.server()];
    await bench.log(leader).append('run-1', numbered(2), 'none');
    follower.behave({ leaderPort: leader.port });
    expect(await all(bench.log(follower).readStream('run-1'))).to.have.length(2);
  });

  it('skip fields that a newer server adds, such as the time of a checkpoint of KurrentDB', () => {
    const writer = new protobuf.BinaryWriter();
    writer.writeMessage(3, true, (_, checkpoint) => {
      checkpoint.writeUint64(1, 5);
      checkpoint.writeUint64(2, 5);
      checkpoint.writeMessage(3, true, (__, timestamp) => timestamp.writeInt64(1, 1_700_000_000));
    });
    writer.writeMessage(99, true, (_, unknown) => unknown.writeString(1, 'new'));
    const answer = readAnswerIn(Buffer.from(writer.getResultBuffer()));
    expect(answer).to.deep.equal({ kind: 'checkpoint', position: positionOf({ commit: 5, prepare: 5 }) });
  });

  it('refuse a message that is cut off, wherever it is', () => {
    const writer = new protobuf.BinaryWriter();
    writer.writeMessage(1, true, (_, read) =>
      read.writeMessage(1, true, (__, event) => {
        event.writeMessage(1, true, (___, uuid) => uuid.writeString(2, 'some id'));
        event.writeUint64(3, 300);
        event.writeBytes(8, Buffer.from('{"text":"some data"}'));
      }),
    );
    const whole = Buffer.from(writer.getResultBuffer());
    expect(readAnswerIn(whole)).to.deep.include({ kind: 'event' });
    for (let size = 1; size < whole.length; size += 1)
      expect(() => readAnswerIn(whole.subarray(0, size)), String(size)).to.throw('The message ends within');
  });

  it('skip the tombstone of a deleted stream', () => {
    const read = (changed: Partial<ServerEvent>) => eventIn({ ...SERVER_EVENT, ...changed }, streamNames(''));
    expect(read({}).stream).to.equal('run-1');
    expect(read({ revision: 2 ** 63 }).stream).to.equal(null);
    expect(read({ type: '$>' }).stream).to.equal(null);
  });

  it('return data that is not JSON as text, and such metadata as empty', () => {
    expect(eventIn({ ...SERVER_EVENT, data: 'text', metadata: 'text' }, streamNames('')))
      .to.include({ data: 'text' })
      .and.to.deep.include({ metadata: {} });
  });

  it('that end early do not delay the close of the log', async () => {
    const deadline = heldDeadline();
    const log = bench.log(await bench.server(), { system: deadline.system });
    await log.append('run-1', numbered(3), 'none');
    for await (const _ of log.readStream('run-1')) {
      // The answers to the read have arrived before this.
      await log.ping();
      break;
    }
    await until(log.subscribe(null, { signal: NEVER }), (seen) => seen.length === 2);
    await log.close();
  });
});

describe('EventStoreDB log: subscriptions', () => {
  const bench = eventStoreBench();

  for (const how of ['unavailable', 'silently'] as const) {
    it(`are dropped with their last position when they end ${how}, and resume from there`, async () => {
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

  it('resume when the server drops them as too slow', async () => {
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

  it('begin at the identity event of their log, not at the beginning of the server', async () => {
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

  it('end at the server when their consumer leaves or their signal aborts', async () => {
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

  it('wait for a server that starts in time, and are dropped otherwise', async () => {
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

  it('and other calls work beyond the limit of calls on a socket', async () => {
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

  it('end when their signal aborts while the server is down', async () => {
    const server = await bench.server();
    await server.kill();
    const { stop } = following(bench.log(server), null);
    await stop();
  });

  it('receive checkpoints past events of other categories', async () => {
    const server = await bench.server();
    const log = bench.log(server);
    for (let n = 0; n < 3; n += 1) await log.append(`document-${n}`, numbered(700), 'none');
    const { collected, waitFor, stop } = following(log, null, ['run']);
    await waitFor((seen) => seen.some(({ kind }) => kind === 'checkpoint'));
    await stop();
    expect(eventsIn(collected)).to.deep.equal([]);
  });
});
