import { expect } from 'chai';
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Corruption } from '../../../src/projections/corrupt-runs.js';
import { ViewsFailed, ViewsLost } from '../../../src/projections/errors.js';
import type { ViewsClient } from '../../../src/projections/views/views-client.js';
import { openViews } from '../../../src/projections/views/views-client.js';
import { changeViews } from '../../support/damaged-log.js';
import type { ManualSystem } from '../../support/manual-system.js';
import { manualSystem } from '../../support/manual-system.js';
import { rejectionOf } from '../../support/rejection.js';
import { summaryWith as summary } from '../../support/run-summaries.js';
import type { TempDir } from '../../support/temp-dir.js';
import { tempDir } from '../../support/temp-dir.js';
import { untilTrue } from '../../support/until-true.js';

const CORRUPT: Corruption = { runId: 'b', seq: 0, reason: 'a test' };
const FAILED = { filter: { status: 'failed' }, limit: 9, offset: 0 } as const;

describe('Stored views with an SQLite fault', () => {
  let dir: TempDir;
  let folder: string;
  let file: string;
  let system: ManualSystem;
  let views: ViewsClient;
  let lost: unknown[];
  let faults: unknown[];

  beforeEach(async () => {
    dir = tempDir();
    folder = join(dir.path, 'views');
    file = join(folder, 'views.sqlite');
    mkdirSync(folder);
    await open();
    await views.write({ runs: [summary('a'), summary('b')], blueprints: [], documents: [], leaves: [] }, null);
    await views.close();
    const bytes = readFileSync(file);
    await open();
    // The pages after the schema.
    writeFileSync(file, bytes.fill(0, 4_096 * 3));
  });
  afterEach(async () => {
    await views.close();
    dir.remove();
  });

  async function open(): Promise<void> {
    system = manualSystem();
    lost = [];
    faults = [];
    views = await openViews(
      { file, log: { identity: 'log', head: null } },
      {
        system,
        onLost: (cause) => lost.push(cause),
        onFault: (error) => faults.push(error),
        corruptRuns: () => [CORRUPT],
      },
    );
  }

  const failTogether = async (): Promise<void> => {
    for (const error of await Promise.all([1, 2, 3].map(() => rejectionOf(views.find('a'))))) {
      expect(error).to.be.instanceOf(ViewsLost);
    }
    expect(lost).to.have.length(1);
  };

  it('are recreated once when several calls fail, and later calls wait for that', async () => {
    await failTogether();
    expect(views.isOpen).to.equal(false);
    expect(await views.list({ limit: 9, offset: 0 })).to.deep.equal([]);
    expect(views.isOpen).to.equal(true);
    expect([lost.length, faults.length]).to.deep.equal([1, 0]);
  });

  it('store the corrupt runs again, so that a filter finds them as failed', async () => {
    await failTogether();
    await views.write({ runs: [summary('a'), summary('b')], blueprints: [], documents: [], leaves: [] }, null);
    expect((await views.list(FAILED)).map(({ id }) => id)).to.deep.equal(['b']);
    await views.close();
    await open();
    expect(views.corruptRuns).to.deep.equal([CORRUPT]);
  });

  it('are recreated 30 s later if that is impossible at first, and a call waits 1 s for them', async () => {
    const aside = join(dir.path, 'aside');
    renameSync(folder, aside);
    writeFileSync(folder, 'no folder');
    await failTogether();
    await untilTrue(() => faults.length === 1);
    expect(faults[0]).to.be.instanceOf(ViewsFailed);
    expect(String(faults[0])).to.include(file).and.include('trying again in 30 s');
    const waiting = rejectionOf(views.count({}));
    await untilTrue(() => system.timers() === 2);
    system.advance(1_000);
    expect(await waiting).to.be.instanceOf(ViewsLost);
    rmSync(folder);
    renameSync(aside, folder);
    system.advance(28_999);
    expect(views.isOpen).to.equal(false);
    system.advance(1);
    await untilTrue(() => views.isOpen);
    expect(await views.count({})).to.equal(0);
    expect(faults).to.have.length(1);
  });

  it('are recreated only after 30 s if they fail again within 30 s', async () => {
    await failTogether();
    expect(await views.count({})).to.equal(0);
    changeViews(dir.path, "INSERT INTO meta VALUES ('touched', ''); PRAGMA wal_checkpoint(TRUNCATE)");
    writeFileSync(file, readFileSync(file).fill(0, 4_096));
    expect(
      await rejectionOf(views.write({ runs: [summary('a')], blueprints: [], documents: [], leaves: [] }, null)),
    ).to.be.instanceOf(ViewsLost);
    system.advance(29_999);
    expect(views.isOpen).to.equal(false);
    system.advance(1);
    await untilTrue(() => views.isOpen);
    expect(lost).to.have.length(2);
  });

  it('do not block the close if they cannot be recreated', async () => {
    rmSync(folder, { recursive: true });
    writeFileSync(folder, 'no folder');
    await failTogether();
    await untilTrue(() => faults.length === 1);
    await views.close();
  });
});
