import { expect } from 'chai';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { ServiceStopping } from '../../src/errors.js';
import type { Position } from '../../src/eventlog/port.js';
import { History } from '../../src/projections/run-history.js';
import type { RunSummary } from '../../src/projections/run-summary.js';
import type { ViewsClient } from '../../src/projections/views/views-client.js';
import { openViews } from '../../src/projections/views/views-client.js';
import type { ManualSystem } from '../support/manual-system.js';
import { manualSystem } from '../support/manual-system.js';
import { rejectionOf } from '../support/rejection.js';
import { summaryWith as summary } from '../support/run-summaries.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';

interface LogInfo {
  readonly identity: string;
  readonly head: Position | null;
}
const LOG: LogInfo = { identity: 'log', head: position(1_000_000) };

describe('History', () => {
  let dir: TempDir;
  let views: ViewsClient;
  let system: ManualSystem;
  let history: History;
  let faults: unknown[];

  beforeEach(async () => {
    dir = tempDir();
    mkdirSync(join(dir.path, 'views'));
    await open();
  });

  afterEach(async () => {
    await views.close();
    dir.remove();
  });

  async function open(log: LogInfo = LOG): Promise<void> {
    system = manualSystem();
    faults = [];
    const onFault = (error: unknown): void => void faults.push(error);
    const deps = { system, onFault, onLost: onFault, corruptRuns: () => [] };
    views = await openViews({ file: join(dir.path, 'views', 'views.sqlite'), log }, deps);
    history = new History({ views, system, onFault });
  }

  it('finds a row before it is written, and writes it 500 ms later', async () => {
    history.put(summary('a'));
    history.setCheckpoint(position(1));
    expect(await views.find('a')).to.equal(null);
    expect(await history.find('a')).to.deep.equal(summary('a'));
    system.advance(499);
    expect(await views.find('a')).to.equal(null);
    system.advance(1);
    await history.flush();
    expect(await views.find('a')).to.deep.equal(summary('a'));
    expect(system.timers()).to.equal(0);
  });

  for (const [what, log] of [
    ['another log', { ...LOG, identity: 'another' }],
    ['a log that ends before', { ...LOG, head: position(1) }],
    ['a log that is empty', { ...LOG, head: null }],
  ] as const) {
    it(`is empty for ${what} of a server`, async () => {
      history.put(summary('a'));
      history.setCheckpoint(position(2));
      await history.flush();
      await views.close();
      await open(log);
      expect(history.checkpoint).to.equal(null);
      expect(await history.list({ limit: 9, offset: 0 })).to.deep.equal([]);
    });
  }

  it('finds the newest row before, during and after its write', async () => {
    for (let round = 0; round < 50; round += 1) {
      history.put(summary('a', { iterationCount: round }));
      const writing = history.flush();
      expect((await history.find('a'))?.iterationCount).to.equal(round);
      history.put(summary('a', { iterationCount: round + 1_000 }));
      expect((await history.find('a'))?.iterationCount).to.equal(round + 1_000);
      await writing;
      expect((await history.find('a'))?.iterationCount).to.equal(round + 1_000);
    }
  });

  it('stores no checkpoint ahead of the rows it belongs to', async () => {
    history.put(summary('a'));
    history.setCheckpoint(position(1));
    await history.flush();
    history.put(summary('b'));
    history.setCheckpoint(position(2));
    await views.close();

    await open();
    expect(history.checkpoint).to.equal(position(1));
    expect(await history.find('a')).to.deep.equal(summary('a'));
    expect(await history.find('b')).to.equal(null);
  });

  it('names unfinished runs in the order of their first events', async () => {
    const statuses = ['running', 'paused', 'pending', 'completed', 'failed', 'running'] as const;
    const ids = ['f', 'e', 'd', 'c', 'b', 'a'];
    for (const [index, id] of ids.entries()) history.put(summary(id, { ...ownedIf(statuses[index] ?? 'failed') }));
    await history.flush();
    history.put(summary('f', { ...ownedIf('running'), iterationCount: 1 }));
    const { seq } = summary('f');
    expect(await history.unfinished()).to.deep.equal([
      { runId: 'f', owner: 'one', seq },
      { runId: 'd', owner: null, seq },
      { runId: 'a', owner: 'one', seq },
    ]);
  });

  it('names 2,498 paused runs in the order of their first events, page by page', async () => {
    const ids = Array.from({ length: 2_500 }, (_, index) => `run ${2_500 - index}`);
    for (const id of ids) history.put(summary(id, { status: 'paused' }));
    for (const id of ['x', 'y']) history.put(summary(id));
    for (const id of [ids[0], ids[1_200]]) history.put(summary(id ?? '', { status: 'failed' }));
    const named: string[] = [];
    for (let page = await history.paused(0); page.length > 0; page = await history.paused(page.at(-1)?.key ?? 0)) {
      named.push(...page.map(({ id }) => id));
    }
    expect(named).to.deep.equal(ids.filter((_, index) => index !== 0 && index !== 1_200));
  });

  it('is full with 5,000 unwritten rows, until they are written', async () => {
    for (let count = 0; count < 4_999; count += 1) history.put(summary(`run ${count}`));
    expect(history.isFull).to.equal(false);
    history.put(summary('the last'));
    expect(history.isFull).to.equal(true);
    await history.flush();
    expect(history.isFull).to.equal(false);
    expect(await views.find('the last')).to.deep.equal(summary('the last'));
    expect(await views.list({ limit: 9_000, offset: 0 })).to.have.lengthOf(5_000);
  });

  it('rejects queries during and after its close with ServiceStopping', async () => {
    const closing = views.close();
    expect(await rejectionOf(views.find('a'))).to.be.instanceOf(ServiceStopping);
    await closing;
    expect(await rejectionOf(history.find('a'))).to.be.instanceOf(ServiceStopping);
  });

  it('keeps rows that it cannot write, and reports the failure once', async () => {
    history.put(summary('a'));
    await views.close();
    expect(await rejectionOf(history.flush())).to.be.instanceOf(Error);
    expect(await history.find('a')).to.deep.equal(summary('a'));
    history.put(summary('b'));
    expect(history.isWritable).to.equal(false);
    system.advance(1_000);
    await rejectionOf(history.flush());
    expect(faults).to.have.lengthOf(1);
    expect(await history.find('b')).to.deep.equal(summary('b'));
  });
});

function ownedIf(status: RunSummary['status']): Pick<RunSummary, 'status' | 'owner'> {
  return { status, owner: status === 'running' ? 'one' : null };
}

function position(number: number): Position {
  return String(number).padStart(16, '0') as Position;
}
