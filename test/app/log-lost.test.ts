import { expect } from 'chai';
import { cpSync, existsSync, renameSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { nodeSystem } from '../../src/system/system.js';
import { LogUnreadable } from '../../src/eventlog/port.js';
import { commandHere } from '../support/council-command.js';
import { instantModel } from '../support/instant-model.js';
import type { TestEngine } from '../support/open-engine.js';
import { openTestEngine, runRequest } from '../support/open-engine.js';
import { allFinished } from '../support/run-when.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { onEmbeddedLog } from '../support/test-event-store.js';

const { uuid } = nodeSystem();

onEmbeddedLog(() =>
  describe('An embedded log that the views beside it were not folded from', () => {
    let dir: TempDir;
    let log: string;
    let views: string;

    beforeEach(() => {
      dir = tempDir();
      [log, views] = [join(dir.path, 'log.sqlite'), join(dir.path, 'views')];
    });
    afterEach(() => dir.remove());

    /** Starts a service, completes a run and stops the service. */
    const served = async (path = dir.path, act: (engine: TestEngine) => Promise<unknown> = finished): Promise<void> => {
      const engine = await openTestEngine({ path, model: instantModel() });
      try {
        await engine.recover();
        await act(engine);
      } finally {
        await engine.stop();
      }
    };
    /** Runs the command that accepts the loss. */
    const accept = async (): Promise<void> => {
      const { code, stderr } = await commandHere(['check', '--accept-loss'], { env: { DATA_DIR: dir.path } });
      expect(code, stderr).to.equal(0);
    };
    const refusal = async (): Promise<string> => {
      const error = await served().catch((thrown: unknown) => thrown);
      expect(error).to.be.instanceOf(LogUnreadable);
      const { message } = error as LogUnreadable;
      expect(message).to.include(log);
      expect(message).not.to.include('\n');
      return message;
    };

    it('is refused if it is missing, and no new log is created in its place', async () => {
      await served();
      rmSync(log);
      expect(await refusal())
        .to.include('restore it')
        .and.include(`"${views}"`);
      rmSync(views, { recursive: true });
      expect(await refusal()).to.include('"log.sqlite-head" exists');
      expect(existsSync(log)).to.equal(false);
      await accept();
      await served();
    });

    it('is refused if it was truncated to an empty file, with and without views, and is not changed', async () => {
      await served();
      truncateSync(log);
      expect(await refusal()).to.include('the file is empty');
      rmSync(views, { recursive: true });
      expect(await refusal()).to.include('the file is empty');
      expect(statSync(log).size).to.equal(0);
      await accept();
      await served();
    });

    it('is refused if only its journal exists', async () => {
      writeFileSync(`${log}-wal`, 'x'.repeat(100));
      expect(await refusal()).to.include('its journal exists');
    });

    it('is refused when a part of its file is missing', async () => {
      await served();
      truncateSync(log, Math.floor(statSync(log).size / 2));
      await refusal();
    });

    it('is refused when it ends before them, as a restored backup does, until the loss is accepted', async () => {
      await served();
      const backup = join(dir.path, 'backup.sqlite');
      cpSync(log, backup);
      await served();
      renameSync(backup, log);
      expect(await refusal()).to.match(/it ends at event \d+: \d+ acknowledged after that are missing/);
      rmSync(views, { recursive: true });
      await refusal();
      await accept();
      await served(dir.path, async ({ queries }) => {
        expect(await queries.list({ limit: 10, offset: 0 })).to.have.length(1);
      });
    });

    it('is refused when it is another log, until it is accepted', async () => {
      await served();
      const other = tempDir();
      await served(other.path);
      cpSync(join(other.path, 'log.sqlite'), log);
      other.remove();
      expect(await refusal()).to.include('it is not the log');
      rmSync(views, { recursive: true });
      expect(await refusal()).to.include('it is not the log');
      await accept();
      await served();
    });

    it('is refused beside views that are ahead of it, if the head file is missing', async () => {
      await served();
      const backup = join(dir.path, 'backup.sqlite');
      cpSync(log, backup);
      await served();
      renameSync(backup, log);
      rmSync(`${log}-head`);
      expect(await refusal())
        .to.include('it ends before')
        .and.include(`"${views}"`);
    });

    it('is accepted if it is the only file in the folder, as after a restore', async () => {
      await served();
      const restored = tempDir();
      cpSync(log, join(restored.path, 'log.sqlite'));
      await served(restored.path, async ({ queries }) => {
        expect(await queries.list({ limit: 10, offset: 0 })).to.have.length(1);
      });
      restored.remove();
    });
  }),
);

async function finished(engine: TestEngine): Promise<void> {
  const runId = uuid();
  await engine.registry.start(runRequest(runId));
  await allFinished(engine, [runId]);
}
