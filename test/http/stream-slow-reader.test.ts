import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { connect } from 'node:net';
import { expect } from 'chai';
import { OpenCount } from '../../src/system/open-count.js';
import { SharedBytes } from '../../src/system/async/shared-bytes.js';
import { nodeSystem } from '../../src/system/system.js';
import { httpApp } from '../../src/http/app.js';
import { countedResponse } from '../../src/http/answer.js';
import { canonical } from '../../src/eventsourcing/canonical-json.js';
import type { FollowEvents, FollowOptions } from '../../src/run/runs/feed.js';
import { summaryOf } from '../../src/projections/run-summary.js';
import type { RunEvent } from '../../src/run/events.js';
import { compileChart } from '../../src/run/chart/machine.js';
import { serveChannels } from '../../src/ws/upgrade.js';
import { NO_KEYS } from '../support/no-keys.js';
import { openChannel } from '../support/channel-client.js';
import { openEventStream } from '../support/event-stream-client.js';
import { NO_LEDGER } from '../support/no-ledger.js';
import { NO_LIMITS } from '../support/no-limits.js';
import { runRequest } from '../support/open-engine.js';
import { untilTrue } from '../support/until-true.js';

const RUN = '11111111-1111-4111-8111-111111111111';
const BIG = 'x'.repeat(128 * 1024);
/** More than the machine's own buffers between service and client hold. */
const MANY = 200;
const DONE = { finalDraft: 'x', criticScore: 8, iterationCount: 1 };

/** How many events the feed has delivered to the edges, in `watching`, and how many they have sent. */
interface Given {
  watching: FollowEvents | null;
  taken: number;
}

/** The limit of unsent bytes of all connections. */
const MAX_IN_ALL = 32e6;

describe('A client of the rich stream that does not read', () => {
  let url: string;
  let openConnections: () => Promise<number>;
  let finalDraft: string | null;
  let given: Given;
  let close: () => Promise<void>;

  /** Serves both edges from a feed that the test controls. */
  beforeEach(async () => {
    given = { watching: null, taken: 0 };
    finalDraft = null;
    const system = nodeSystem();
    const never = (): never => expect.fail('Nobody asked for this');
    const onFault = (...fault: readonly unknown[]): never => expect.fail(String(fault.at(-1)));
    const requested = runRequest(RUN);
    const first = { type: 'RunRequested' as const, data: requested, seq: 0, id: '', at: '', hash: '' };
    const { run } = compileChart(requested.graph).first(first).context;
    const feed = {
      follow: (_runId: string, watching: FollowOptions) =>
        new Promise<null>((resolve) => {
          if (!('onEvent' in watching)) return;
          given.watching = watching;
          watching.onCaughtUp?.();
          watching.signal.addEventListener('abort', () => resolve(null));
        }),
      watchersOf: never,
    };
    const state = () => Promise.resolve(run);
    const find = () => Promise.resolve({ ...summaryOf(run), finalDraft });
    const source = {
      isOwnHost: () => true,
      basePath: '',
      corsOrigins: [],
      limits: NO_LIMITS,
      problemForms: [],
      unsent: new SharedBytes({ maxInAll: MAX_IN_ALL }),
      receiving: new SharedBytes(),
      streams: new OpenCount(),
      doors: [],
      ...NO_KEYS,
    };
    const server = createServer(
      { ServerResponse: countedResponse({ system, ...source }) },
      httpApp({
        registry: {
          start: never,
          previewStart: never,
          refuse: never,
          findRequest: never,
          decisionContext: never,
          cancel: never,
          decidePause: never,
        },
        queries: {
          find,
          listed: never,
          state,
          list: never,
          count: never,
          counts: never,
          overview: never,
          record: never,
          folded: never,
          forkPoint: never,
        },
        ledger: NO_LEDGER,
        eraseRun: never,
        eraseDocument: never,
        verify: never,
        genealogy: never,
        deliberation: never,
        decisions: never,
        marking: never,
        docx: never,
        citedPages: never,
        prompt: never,
        feed,
        logFeed: { start: never, follow: never },
        inbox: { list: never, waiting: never, follow: never },
        blueprints: { issuesOf: never, find: never, versions: never, create: never, update: never, remove: never },
        blueprintList: never,
        documents: {
          find: never,
          chunks: never,
          search: never,
          verify: never,
          ingest: never,
          waitUntilSearchable: never,
        },
        documentList: never,
        uploadDir: '',
        ready: never,
        unreachableModels: never,
        modelUses: never,
        providers: never,
        logInfo: never,
        prices: never,
        backups: { start: never, last: never },
        system,
        maxMaterialBytes: 1000,
        marksExports: true,
        schemaChecker: { faultOf: async () => null },
        nodeDefaults: { timeoutMs: 1000, maxAttempts: 1 },
        canonical,
        fullName: () => 'offline/offline-1',
        offlineModel: 'offline',
        ...source,
        appendDeadlineMs: 10_000,
        onFault,
        log: { info: () => undefined },
      }),
    );
    const queries = { find, assertNotErased: async () => undefined };
    const rich = { feed, queries, tokens: { subscribe: () => null } };
    const channels = serveChannels(server, { ...rich, system, ...source, onFault });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    openConnections = () =>
      new Promise((resolve, reject) => {
        server.getConnections((error, count) => (error === null ? resolve(count) : reject(error)));
      });
    close = async () => {
      await channels.stop();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    };
  });
  afterEach(() => close());

  const watched = async (): Promise<FollowEvents> => {
    await untilTrue(() => given.watching !== null);
    return given.watching ?? expect.fail('Nobody watches');
  };
  const lastAt = (seq: number): RunEvent => ({ type: 'RunCompleted', data: DONE, seq, id: '', at: '', hash: '' });
  /** Delivers live events, which do not wait for readers, until the watcher has left. */
  const feedLive = async ({ onEvent, signal }: FollowEvents): Promise<number> => {
    let seq = 0;
    for (; !signal.aborted && seq < 1_000; seq += 1) {
      void onEvent(bigAt(seq));
      await new Promise(setImmediate);
    }
    return seq;
  };
  /** Delivers recorded events, each after the previous one was sent. */
  const feedHistory = async ({ onEvent }: FollowEvents): Promise<void> => {
    for (let seq = 0; seq < MANY; seq += 1) {
      await onEvent(bigAt(seq));
      given.taken += 1;
    }
    await onEvent(lastAt(MANY));
  };

  it('is closed with 4408 on a socket when more than 1 MiB is unsent', async () => {
    const channel = openChannel(url, `/ws/council/${RUN}?events=all`);
    await once(channel.socket, 'open');
    channel.socket.pause();
    expect(await feedLive(await watched())).to.be.lessThan(1_000);
    channel.socket.resume();
    expect(await channel.closed).to.equal(4408);
    const seqs = channel.messages.filter(({ event }) => event === 'run_event').map(({ seq }) => seq);
    expect(seqs).to.deep.equal(Array.from(seqs, (_, index) => index));
  });

  it('is disconnected from a complete answer when all answers together exceed the limit of unsent bytes', async () => {
    // More than the machine's own buffers between service and client hold.
    finalDraft = 'x'.repeat(16e6);
    const clients: Socket[] = [];
    for (let count = 0; count < 4; count += 1) {
      const client = connect(Number(new URL(url).port), '127.0.0.1');
      client.on('error', () => undefined);
      client.write(`GET /api/councils/run/${RUN} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`);
      await once(client, 'readable');
      clients.push(client);
    }
    await untilTrue(async () => (await openConnections()) < clients.length);
    expect(await openConnections()).to.be.greaterThan(0);
    clients.forEach((client) => client.destroy());
  });

  it('is disconnected from an event stream when more than 1 MiB is unsent', async () => {
    const stream = openEventStream(url, `/api/runs/${RUN}/stream`);
    await stream.answered;
    await stream.pause();
    expect(await feedLive(await watched())).to.be.lessThan(1_000);
    stream.resume();
    expect(await stream.over).to.equal('cut');
    const ids = stream.events.map(({ id }) => id);
    expect(ids).to.deep.equal(Array.from(ids, (_, index) => String(index)));
  });

  it('delays recorded events without a disconnection on a socket', async () => {
    const channel = openChannel(url, `/ws/council/${RUN}?events=all`);
    await once(channel.socket, 'open');
    channel.socket.pause();
    const fed = feedHistory(await watched());
    await standsStill(() => given.taken);
    expect(given.taken).to.be.lessThan(MANY);
    channel.socket.resume();
    await fed;
    expect(await channel.closed).to.equal(1000);
    expect(channel.messages.filter(({ event }) => event === 'run_event')).to.have.length(MANY + 1);
  });

  it('delays recorded events without a disconnection on an event stream', async () => {
    const stream = openEventStream(url, `/api/runs/${RUN}/stream`);
    await stream.answered;
    await stream.pause();
    const fed = feedHistory(await watched());
    await standsStill(() => given.taken);
    expect(given.taken).to.be.lessThan(MANY);
    stream.resume();
    await fed;
    await stream.until(({ id }) => id === String(MANY));
    expect(stream.events).to.have.length(MANY + 1);
  });
});

/** A large event that does not end the run. */
function bigAt(seq: number): RunEvent {
  const output = { draft: BIG };
  const usage = { inputTokens: 0, outputTokens: 0 };
  const data = { step: 1, node: 'n', attempt: 1, output, usage, durationMs: 0, route: { next: [], reason: '' } };
  return { type: 'NodeCompleted', data, seq, id: '', at: '', hash: '' };
}

/** Resolves when a number has not changed for some hundred turns of the event loop. */
async function standsStill(value: () => number): Promise<void> {
  let before = value();
  for (let turns = 0; turns < 300; turns += 1) {
    await new Promise(setImmediate);
    if (value() !== before) turns = 0;
    before = value();
  }
}
