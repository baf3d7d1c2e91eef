import { DatabaseSync } from '@photostructure/sqlite';
import { expect } from 'chai';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { LogUnreadable } from '../../src/eventlog/port.js';
import { nodeSystem } from '../../src/system/system.js';
import { instantModel } from '../support/instant-model.js';
import type { TestEngine } from '../support/open-engine.js';
import { openTestEngine, runRequest } from '../support/open-engine.js';
import { rejectionOf } from '../support/rejection.js';
import { allFinished } from '../support/run-when.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { onEmbeddedLog } from '../support/test-event-store.js';

onEmbeddedLog(() =>
  describe('A missing index entry', () => {
    let dir: TempDir;
    beforeEach(() => {
      dir = tempDir();
    });
    afterEach(() => dir.remove());

    const open = (): Promise<TestEngine> => openTestEngine({ path: dir.path, model: instantModel() });
    const finishedRun = async (): Promise<string> => {
      const engine = await open();
      await engine.recover();
      const runId = nodeSystem().uuid();
      await engine.registry.start(runRequest(runId));
      await allFinished(engine, [runId]);
      await engine.stop();
      return runId;
    };
    /** Runs each statement on a new connection, which reads the schema again. */
    const change = (file: string, ...steps: readonly string[]): void => {
      for (const sql of steps) {
        const database = new DatabaseSync(file, { defensive: false });
        database.exec(`PRAGMA writable_schema = ON; ${sql}`);
        database.close();
      }
    };
    /** Changes a table without one of its indexes. */
    const behindIndex = (file: string, index: string, sql: string): void =>
      change(
        file,
        `CREATE TABLE kept AS SELECT * FROM sqlite_master WHERE name = '${index}';
         DELETE FROM sqlite_master WHERE name = '${index}'`,
        sql,
        'INSERT INTO sqlite_master SELECT * FROM kept',
        'DROP TABLE kept',
      );

    it('of the end of a run makes the next start fail with one line', async () => {
      await finishedRun();
      const last = '(SELECT max(position) FROM events)';
      change(
        join(dir.path, 'log.sqlite'),
        `CREATE TABLE ended AS SELECT * FROM events WHERE position = ${last}; DELETE FROM events WHERE position = ${last}`,
      );
      behindIndex(join(dir.path, 'log.sqlite'), 'events_by_stream', 'INSERT INTO events SELECT * FROM ended');
      change(join(dir.path, 'log.sqlite'), 'DROP TABLE ended');
      rmSync(join(dir.path, 'views'), { recursive: true });
      const error = await rejectionOf(open());
      expect(error).to.be.instanceOf(LogUnreadable);
      expect(String(error)).to.include('index events_by_stream').and.include('council salvage').and.not.include('\n');
    });

    it('of the views makes the next start after a kill rebuild the views', async () => {
      const runId = await finishedRun();
      const views = join(dir.path, 'views', 'views.sqlite');
      change(views, 'CREATE TABLE lost AS SELECT * FROM facets; DELETE FROM facets');
      behindIndex(views, 'facets_newest', 'INSERT INTO facets SELECT * FROM lost');
      change(views, 'DROP TABLE lost');
      // A kill leaves a journal that is not complete.
      writeFileSync(`${views}-wal`, Buffer.alloc(100));
      const engine = await open();
      await engine.recovery.unfinished();
      const rows = await engine.queries.list({ limit: 10, offset: 0 });
      await engine.stop();
      expect(rows.map(({ id }) => id)).to.deep.equal([runId]);
    });
  }),
);
