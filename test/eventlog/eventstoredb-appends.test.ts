import { expect } from 'chai';
import {
  AppendInvalid,
  AppendOutcomeUnknown,
  LogUnavailable,
  RevisionConflict,
  StreamRemoved,
} from '../../src/eventlog/errors.js';
import type { EventLog } from '../../src/eventlog/port.js';
import type { AppendFate } from '../support/event-store-calls.js';
import { rejectionOf } from '../support/rejection.js';
import { untilTrue } from '../support/until-true.js';
import { all, idsOf, newEvent, numbered } from './contract-bench.js';
import { eventStoreBench, SHORT_MS, surely } from './eventstoredb-bench.js';

/** A script that sets the fate of the first append and answers all others. */
function onceFated(fate: AppendFate): () => AppendFate {
  let isFirst = true;
  return () => {
    const now = isFirst ? fate : 'answered';
    isFirst = false;
    return now;
  };
}

/** Appends one event after the other, each to a new stream, until a promise settles. */
async function appendUntil(log: EventLog, other: Promise<unknown>): Promise<void> {
  const end = other.then(() => 'end');
  for (let n = 0; (await Promise.race([end, log.append(`run-${n}`, numbered(1), 'none')])) !== 'end';) n += 1;
}

describe('EventStoreDB log: appends made at once', () => {
  const bench = eventStoreBench();

  it('do not wait for a turn of the loop each', async () => {
    const server = await bench.server();
    const log = bench.log(server);
    await log.append('run-0', numbered(1), 'none');
    let turn = 0;
    let isOver = false;
    const count = (): void => {
      turn += 1;
      if (!isOver) setImmediate(count);
    };
    const turns = new Set<number>();
    server.behave({
      append: () => {
        turns.add(turn);
        return 'answered';
      },
    });
    count();
    await Promise.all(Array.from({ length: 64 }, (_, n) => log.append(`run-${n + 1}`, numbered(1), 'none')));
    isOver = true;
    expect(turns.size).to.be.lessThan(20);
  });
});

describe('EventStoreDB log: appends without an answer', () => {
  const bench = eventStoreBench();

  for (const fate of ['written, then reset', 'written, then silence', 'written, then the call ends'] as const) {
    it(`have an unknown outcome when they are ${fate}, and a repeat returns the first result`, async () => {
      const server = await bench.server();
      const log = bench.log(server, { deadlineMs: SHORT_MS });
      const before = await surely(log, 'run-1', numbered(1), 'none');
      server.behave({ append: onceFated(fate) });
      const events = numbered(2);
      expect(await rejectionOf(log.append('run-1', events, 0))).to.be.instanceOf(AppendOutcomeUnknown);
      const { revision, position } = await surely(log, 'run-1', events, 0);
      expect(revision).to.equal(2);
      expect(position > before.position).to.equal(true);
      expect(idsOf(await all(log.readStream('run-1', { from: 1 })))).to.deep.equal(idsOf(events));
    });
  }

  for (const fate of ['reset', 'silence', 'the call ends', 'the call fails', 'not ready', 'timed out'] as const) {
    it(`have an unknown outcome when the answer is ${fate}, and a repeat writes them`, async () => {
      const server = await bench.server();
      const log = bench.log(server, { deadlineMs: SHORT_MS });
      await log.identity();
      server.behave({ append: onceFated(fate) });
      const events = numbered(2);
      const error = await rejectionOf(log.append('run-1', events, 'none'));
      expect(error).to.be.instanceOf(AppendOutcomeUnknown);
      expect(error).to.have.deep.property('data', { stream: 'run-1' });
      expect(await surely(log, 'run-1', events, 'none')).to.include({ revision: 1 });
      expect(await all(log.readStream('run-1'))).to.have.length(2);
    });
  }

  it('do not close the connection of answered ones', async () => {
    const server = await bench.server();
    const log = bench.log(server, { deadlineMs: SHORT_MS });
    server.behave({ append: ({ stream }) => (stream === 'run-silent' ? 'silence' : 'answered') });
    const silent = rejectionOf(log.append('run-silent', numbered(1), 'none'));
    await appendUntil(log, silent);
    expect(await silent).to.be.instanceOf(AppendOutcomeUnknown);
    expect(server.connectionsEver()).to.equal(1);
  });

  it('that conflict are reported once the winning event can be read', async () => {
    const server = await bench.server();
    const log = bench.log(server);
    await log.append('run-1', numbered(1), 'none');
    let reads = 0;
    server.behave({
      read: () => {
        reads += 1;
        return reads <= 3 ? 'not yet' : 'answered';
      },
    });
    expect(await rejectionOf(log.append('run-1', numbered(1), 'none'))).to.be.instanceOf(RevisionConflict);
    expect(reads).to.be.greaterThan(3);
    expect(await all(log.readStream('run-1'))).to.have.length(1);
  });

  it('that conflict with an event that stays invisible fail as unavailable', async () => {
    const server = await bench.server();
    const log = bench.log(server, { deadlineMs: SHORT_MS });
    await log.append('run-1', numbered(1), 'none');
    server.behave({ read: () => 'not yet' });
    expect(await rejectionOf(log.append('run-1', numbered(1), 'none'))).to.be.instanceOf(LogUnavailable);
  });

  it('of the log’s name by two processes at once give the log one name', async () => {
    const server = await bench.server();
    let reads = 0;
    server.behave({ read: () => ((reads += 1) <= 6 ? 'not yet' : 'answered') });
    const names = await Promise.all([bench.log(server).identity(), bench.log(server).identity()]);
    expect(names[0]).to.equal(names[1]);
  });

  it('share their answer with an equal append in flight only', async () => {
    const server = await bench.server();
    const log = bench.log(server);
    let asked = 0;
    await log.identity();
    server.behave({
      append: () => {
        asked += 1;
        return 'answered';
      },
    });
    const events = numbered(2);
    const more = [...events, newEvent()];
    const twice = Promise.all([log.append('run-1', events, 'none'), log.append('run-1', events, 'none')]);
    const other = rejectionOf(log.append('run-1', more, 'none'));
    const [one, two] = await twice;
    expect(two).to.deep.equal(one);
    expect(await other).to.be.instanceOf(RevisionConflict);
    expect(asked).to.equal(2);
  });

  it('have an unknown outcome while another process writes the same, and settle when repeated', async () => {
    const server = await bench.server();
    const [one, two] = [bench.log(server), bench.log(server, { deadlineMs: SHORT_MS })];
    await two.identity();
    await one.identity();
    let release = (): void => undefined;
    const released = new Promise<AppendFate>((resolve) => (release = () => resolve('answered')));
    let asked = 0;
    server.behave({
      append: () => {
        asked += 1;
        return released;
      },
    });
    const events = numbered(1);
    const first = one.append('run-1', events, 'none');
    await untilTrue(() => asked === 1);
    expect(await rejectionOf(two.append('run-1', events, 'none'))).to.be.instanceOf(AppendOutcomeUnknown);
    release();
    expect(await surely(two, 'run-1', events, 'none')).to.deep.include(await first);
  });
});

describe('EventStoreDB log: appends that are certainly not written', () => {
  const bench = eventStoreBench();

  it('fail as unavailable when access is denied', async () => {
    const server = await bench.server();
    server.behave({ append: () => 'access denied' });
    const error = await rejectionOf(bench.log(server).append('run-1', numbered(1), 'none'));
    expect(error).to.be.instanceOf(LogUnavailable);
  });

  it('say so when the stream was deleted', async () => {
    const server = await bench.server();
    const log = bench.log(server);
    await log.identity();
    server.behave({ append: () => 'stream deleted' });
    const error = await rejectionOf(log.append('run-1', numbered(1), 'none'));
    expect(error).to.be.instanceOf(StreamRemoved);
    expect(error).to.have.deep.property('data', { stream: 'run-1' });
  });

  it('fail with the text of the server, without the password in it', async () => {
    const server = await bench.server();
    const log = bench.log(server.url.replace('esdb://', 'esdb://admin:s3cret-word@'));
    await log.identity();
    server.behave({
      append() {
        throw new AppendInvalid({ stream: 'run-1', reason: 'not with s3cret-word' });
      },
    });
    const error = await rejectionOf(log.append('run-1', numbered(1), 'none'));
    expect(error).to.have.deep.property('data', { stream: 'run-1', reason: 'not with …' });
  });

  it('fail as unavailable when the server is down until the deadline', async () => {
    const server = await bench.server();
    const log = bench.log(server, { deadlineMs: SHORT_MS });
    await surely(log, 'run-1', numbered(1), 'none');
    await server.kill();
    // The client may notice only with the first append that the connection has ended.
    await rejectionOf(log.append('run-1', numbered(1), 0));
    expect(await rejectionOf(log.append('run-2', numbered(1), 'none'))).to.be.instanceOf(LogUnavailable);
    await server.restart();
    expect(await all(log.readStream('run-2'))).to.deep.equal([]);
    await surely(log, 'run-2', numbered(1), 'none');
  });

  it('fail as unavailable when too many wait', async () => {
    const server = await bench.server();
    const log = bench.log(server, { deadlineMs: 2 * SHORT_MS });
    await server.kill();
    const appends = Array.from({ length: 20_001 }, (_, n) => rejectionOf(log.append(`run-${n}`, numbered(1), 'none')));
    const error = await appends.at(-1);
    expect(error).to.be.instanceOf(LogUnavailable);
    expect(error).not.to.have.property('cause');
    await Promise.all(appends);
  });
});

describe('EventStoreDB log: appends through an outage', () => {
  const bench = eventStoreBench();

  it('succeed as soon as a server that was away for seconds is back', async () => {
    const server = await bench.server();
    const log = bench.log(server, { deadlineMs: 2 * SHORT_MS });
    await log.append('run-1', numbered(1), 'none');
    await server.kill();
    for (let failed = 0; failed < 12; failed += 1) await rejectionOf(log.append('run-1', numbered(1), 0));
    await server.restart();
    expect(await log.append('run-2', numbered(1), 'none')).to.include({ revision: 0 });
  });

  it('wait for a server that starts in time', async () => {
    const server = await bench.server();
    await server.kill();
    const append = bench.log(server).append('run-1', numbered(1), 'none');
    await server.restart();
    expect((await append).revision).to.equal(0);
  });

  it('go to the leader when their node is a follower', async () => {
    const [leader, follower] = [await bench.server(), await bench.server()];
    const log = bench.log(follower);
    await log.identity();
    follower.behave({ leaderPort: leader.port });
    const events = numbered(1);
    expect(await rejectionOf(log.append('run-1', events, 'none'))).to.be.instanceOf(AppendOutcomeUnknown);
    expect((await surely(log, 'run-1', events, 'none')).revision).to.equal(0);
    expect(idsOf(await all(log.readStream('run-1')))).to.deep.equal(idsOf(events));
    expect(leader.connections()).to.be.greaterThan(0);
  });

  it('find the leader of a cluster by gossip, and the next leader', async () => {
    const [one, two] = [await bench.server(), await bench.server()];
    one.behave({ leaderPort: two.port });
    const log = bench.log(`esdb://127.0.0.1:${one.port},127.0.0.1:${two.port}?tls=false`);
    await log.append('run-1', numbered(1), 'none');
    expect(two.connections()).to.be.greaterThan(0);
    one.behave({});
    two.behave({ leaderPort: one.port });
    expect((await surely(log, 'run-2', numbered(1), 'none')).revision).to.equal(0);
    expect(await all(log.readStream('run-2'))).to.have.length(1);
  });

  it('succeed once discovery works again, after several failures', async () => {
    const [one, two] = [await bench.server(), await bench.server()];
    const url = `esdb://127.0.0.1:${one.port},127.0.0.1:${two.port}?tls=false&maxDiscoverAttempts=1&discoveryInterval=10`;
    const log = bench.log(url, { deadlineMs: SHORT_MS });
    two.behave({ gossip: () => false, leaderPort: one.port });
    one.behave({ gossip: () => false });
    for (let n = 0; n < 3; n += 1) {
      expect(await rejectionOf(log.append('run-1', numbered(1), 'none'))).to.be.instanceOf(LogUnavailable);
    }
    one.behave({});
    expect((await surely(log, 'run-1', numbered(1), 'none')).revision).to.equal(0);
  });
});
