import { expect } from 'chai';
import { join } from 'node:path';
import { nodeSystem } from '../../src/system/system.js';
import { LogUnavailable } from '../../src/eventlog/errors.js';
import { ServiceStopping } from '../../src/errors.js';
import type { DocumentFact } from '../../src/documents/events.js';
import { documentIdOf, documentStream } from '../../src/documents/events.js';
import { appendFacts, headAt } from '../../src/eventsourcing/aggregate.js';
import { DIMENSIONS } from '../../src/embeddings/port.js';
import { OFFLINE_EMBEDDING_MODEL, offlineEmbeddings } from '../../src/embeddings/offline.js';
import { documentSearch } from '../../src/search/document-search.js';
import { IndexFull, IndexLost } from '../../src/search/errors.js';
import { SearchIndexer } from '../../src/search/indexer.js';
import type { SearchIndex } from '../../src/search/index-client.js';
import { openSearchIndex } from '../../src/search/index-client.js';
import { openEmbeddedLog } from '../../src/eventlog/embedded/log.js';
import type { EventLog, Position } from '../../src/eventlog/port.js';
import { lastEvent } from '../../src/eventlog/port.js';
import { damageOpen } from '../support/damaged-file.js';
import { changedLog } from '../support/changed-log.js';
import { rejectionOf } from '../support/rejection.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { untilTrue } from '../support/until-true.js';

/** A system whose timers wait a fiftieth of their time. */
const system = { ...nodeSystem(), after: (ms: number, call: () => void) => nodeSystem().after(ms / 50, call) };

describe('SearchIndexer', () => {
  let dir: TempDir;
  let log: EventLog;
  let feeds: SearchIndexer[];
  let faults: unknown[];
  let opened: number;

  beforeEach(async () => {
    dir = tempDir();
    log = await openEmbeddedLog({ file: join(dir.path, 'log.sqlite') });
    [feeds, faults, opened] = [[], [], 0];
  });
  afterEach(async () => {
    await Promise.all(feeds.map((feed) => feed.stop(null)));
    await log.close();
    dir.remove();
  });

  const feedOf = (
    from = log,
    model: string | null = null,
    decorate = (index: SearchIndex): SearchIndex => index,
    maxWaiting?: number,
  ): SearchIndexer => {
    const feed = new SearchIndexer({
      log: from,
      system,
      model,
      onIncomplete: () => undefined,
      maxWaiting,
      async open(lost) {
        opened += 1;
        const at = { identity: await log.identity(), head: await log.head() };
        const file = join(dir.path, 'passages.sqlite');
        const setup = { file, log: at, model: model ?? OFFLINE_EMBEDDING_MODEL, dimensions: DIMENSIONS };
        const onLost = (cause: unknown): void => {
          faults.push(cause);
          lost();
        };
        const onFault = (error: unknown): void => void faults.push(error);
        return decorate(await openSearchIndex(setup, { system, onLost, onFault }));
      },
      onFault: (error) => faults.push(error),
    });
    feeds.push(feed);
    return feed;
  };
  const append = async (id: string, ...facts: readonly DocumentFact[]): Promise<Position> => {
    const last = await lastEvent(log, documentStream(id));
    const { position } = await appendFacts(
      { log, system: nodeSystem(), instanceId: 'i' },
      { stream: documentStream(id), subject: id, head: last && headAt(last), facts },
      new AbortController().signal,
    );
    return position;
  };
  const record = (id: string, text: string): Promise<Position> => {
    const chunks = [{ page: 1, from: 0, to: text.length, text }];
    return append(
      id,
      { type: 'DocumentReceived', data: { filename: 'x.pdf', bytes: 1, pages: 1 } },
      { type: 'ChunksAdded', data: { chunks } },
      { type: 'DocumentIngested', data: { chunks: 1, filename: 'x.pdf', pages: 1, since: 0, ingestedAt: null } },
    );
  };
  const remove = (id: string): Promise<Position> => append(id, { type: 'DocumentDeleted', data: {} });
  /** Delivers every event after a position. */
  const tell = async (feed: SearchIndexer, after: Position | null): Promise<void> => {
    for await (const event of log.readAll(after)) if (documentIdOf(event.stream) !== null) feed.enqueue(event);
  };
  const found = async (feed: SearchIndexer): Promise<readonly string[]> => {
    const passages = await feed.index?.search({ text: 'oaks', vector: null, topK: 100 });
    return (passages ?? []).map(({ document }) => document).sort();
  };

  it('opens no index while there is no document', async () => {
    const feed = feedOf();
    feed.start(null, { hasDocuments: false });
    expect(feed.isCaughtUp).to.equal(true);
    await feed.waitFor('5' as Position);
    expect(feed.index).to.equal(null);
    await feed.stop(null);
    expect(opened).to.equal(0);
  });

  it('indexes earlier and delivered events, each once', async () => {
    const first = await record('a', 'Oaks are old.');
    const feed = feedOf();
    feed.start(first, { hasDocuments: true });
    expect(feed.isCaughtUp).to.equal(false);
    const second = await record('b', 'Oaks are tall.');
    await tell(feed, null);
    await feed.waitFor(second);
    expect(await found(feed)).to.deep.equal(['a', 'b']);
    expect(feed.index?.count()).to.equal(2);
    const third = await remove('a');
    await tell(feed, second);
    await feed.waitFor(third);
    expect(await found(feed)).to.deep.equal(['b']);
    expect(feed.isCaughtUp).to.equal(true);
  });

  it('indexes at its next start what an old index lacks', async () => {
    const first = await record('a', 'Oaks are old.');
    const before = feedOf();
    before.start(null, { hasDocuments: false });
    await tell(before, null);
    await before.waitFor(first);
    await before.stop(first);
    const gone = await remove('a');
    const none = feedOf();
    none.start(gone, { hasDocuments: false });
    const third = await record('c', 'Oaks are green.');
    await tell(none, gone);
    await none.waitFor(third);
    expect(await found(none)).to.deep.equal(['c']);
    await none.stop(third);
    const last = await record('d', 'Oaks are wide.');
    const behind = feedOf();
    behind.start(last, { hasDocuments: true });
    await untilTrue(() => behind.isCaughtUp);
    expect(await found(behind)).to.deep.equal(['c', 'd']);
  });

  it('drops events beyond its queue limit, and reads them from the log', async () => {
    const ids = Array.from({ length: 11 }, (_, index) => `d${index}`);
    let last: Position | null = null;
    for (const id of ids) last = await record(id, 'Oaks.');
    let readings = 0;
    const counting = changedLog(log, {
      readAll(after, range) {
        readings += 1;
        return log.readAll(after, range);
      },
    });
    const feed = feedOf(counting, null, undefined, ids.length - 1);
    feed.start(null, { hasDocuments: false });
    // All in one turn of the event loop, before the index is open.
    const events = [];
    for await (const event of log.readAll(null)) events.push(event);
    for (const event of events) feed.enqueue(event);
    if (last !== null) await feed.waitFor(last);
    expect(feed.index?.count()).to.equal(ids.length);
    expect(readings).to.equal(1);
  });

  it('retries while the log is unavailable, and reports that once', async () => {
    let isDown = true;
    let refused = 0;
    const flaky = changedLog(log, {
      async *readStream(stream, range) {
        if (isDown) {
          refused += 1;
          throw new LogUnavailable();
        }
        yield* log.readStream(stream, range);
      },
    });
    const position = await record('a', 'Oaks.');
    const feed = feedOf(flaky);
    feed.start(null, { hasDocuments: false });
    await tell(feed, null);
    await untilTrue(() => refused >= 3);
    expect(feed.isCaughtUp).to.equal(false);
    isDown = false;
    await feed.waitFor(position);
    expect(await found(feed)).to.deep.equal(['a']);
    expect(faults).to.have.lengthOf(1);
  });

  it('indexes everything again in the new file of an index that fails, and searches wait for it', async () => {
    await record('a', 'Oaks are old.');
    const last = await record('b', 'Oaks are tall.');
    const feed = feedOf();
    feed.start(last, { hasDocuments: true });
    feed.markHistoryDelivered();
    await feed.waitFor(last);
    const damaged = (bytes: Buffer<ArrayBuffer>): Buffer<ArrayBuffer> => bytes.fill(0, 4_096);
    damageOpen(join(dir.path, 'passages.sqlite'), damaged, () => 0);
    const search = documentSearch({
      indexer: feed,
      recordsVectors: false,
      isCorrupt: () => false,
      filenameOf: async () => null,
      embeddings: offlineEmbeddings(),
    });
    const signal = new AbortController().signal;
    const passages = await search.search('oaks', 20, { signal });
    expect(passages.map(({ document }) => document).sort()).to.deep.equal(['a', 'b']);
    expect([opened, faults.length]).to.deep.equal([1, 1]);
    const third = await record('c', 'Oaks are wide.');
    await tell(feed, last);
    await feed.waitFor(third);
    expect(await found(feed)).to.deep.equal(['a', 'b', 'c']);
  });

  it('never indexes only the document under way into the new file of a failed index', async () => {
    let hold: Promise<void> | null = null;
    let isHeld = false;
    const slow = changedLog(log, {
      async *readStream(stream, range) {
        isHeld = hold !== null;
        await hold;
        yield* log.readStream(stream, range);
      },
    });
    const first = await record('a', 'Oaks are old.');
    const feed = feedOf(slow);
    feed.start(first, { hasDocuments: true });
    feed.markHistoryDelivered();
    await feed.waitFor(first);
    let go: () => void = () => undefined;
    hold = new Promise((resolve) => (go = resolve));
    const last = await record('b', 'Oaks are tall.');
    await tell(feed, first);
    await untilTrue(() => isHeld);
    damageOpen(
      join(dir.path, 'passages.sqlite'),
      (bytes) => bytes.fill(0, 4_096),
      () => 0,
    );
    expect(await rejectionOf(found(feed))).to.be.instanceOf(IndexLost);
    // A slow machine may need several attempts to open the new file.
    const isEmpty = async (): Promise<boolean> => {
      const result = await found(feed).catch((error: unknown) => error);
      if (result instanceof IndexLost) return false;
      expect(result).to.deep.equal([]);
      return true;
    };
    await untilTrue(isEmpty);
    hold = null;
    go();
    await feed.waitFor(last);
    expect(await found(feed)).to.deep.equal(['a', 'b']);
  });

  it('keeps an index whose disk is full, and retries', async () => {
    const position = await record('a', 'Oaks.');
    let writes = 0;
    const feed = feedOf(log, null, (index) => ({
      ...index,
      async write(change) {
        writes += 1;
        if (writes === 2) throw new IndexFull();
        await index.write(change);
      },
    }));
    feed.start(position, { hasDocuments: true });
    await untilTrue(() => feed.isCaughtUp);
    expect(await found(feed)).to.deep.equal(['a']);
    expect([opened, faults.map(String)]).to.deep.equal([1, [String(new IndexFull())]]);
  });

  it('omits a corrupt document, reports it, and indexes the others', async () => {
    await record('a', 'Oaks are old.');
    const broken = changedLog(log, {
      async *readStream(stream, range) {
        for await (const event of log.readStream(stream, range)) {
          yield stream === 'document-a' ? { ...event, data: event.data.replace('old', 'new') } : event;
        }
      },
    });
    const last = await record('b', 'Oaks are tall.');
    const feed = feedOf(broken);
    feed.start(last, { hasDocuments: true });
    await untilTrue(() => feed.isCaughtUp);
    expect(await found(feed)).to.deep.equal(['b']);
    expect(faults.map(String)).to.deep.equal([
      'DocumentCorrupt: The record of document "a" is damaged at seq 1: its hash does not follow from the event before it and its own fields',
    ]);
  });

  it('rejects waits for events that it no longer indexes', async () => {
    let go: () => void = () => undefined;
    const gate = new Promise<void>((resolve) => (go = resolve));
    const slow = changedLog(log, {
      async *readStream(stream, range) {
        await gate;
        yield* log.readStream(stream, range);
      },
    });
    await record('a', 'Oaks.');
    const last = await record('b', 'Oaks.');
    const feed = feedOf(slow);
    feed.start(null, { hasDocuments: false });
    await tell(feed, null);
    const waiting = rejectionOf(feed.waitFor(last));
    await untilTrue(() => feed.index !== null);
    const stopped = feed.stop(last);
    go();
    await stopped;
    expect(await waiting).to.be.instanceOf(ServiceStopping);
    const again = feedOf();
    again.start(last, { hasDocuments: true });
    await untilTrue(() => again.isCaughtUp);
    expect(await found(again)).to.deep.equal(['a', 'b']);
  });
});
