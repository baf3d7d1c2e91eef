import { expect } from 'chai';
import { join } from 'node:path';
import { nodeSystem } from '../../src/system/system.js';
import type { LanguageModel } from '../../src/models/port.js';
import type { RunEvent } from '../../src/run/events.js';
import { instantModel } from '../support/instant-model.js';
import type { TestEngine } from '../support/open-engine.js';
import { openTestEngine, runRequest } from '../support/open-engine.js';
import { recordOf } from '../support/record-of.js';
import { allFinished } from '../support/run-when.js';
import { scriptedModel } from '../support/scripted-model.js';
import type { LogLine, SharedLog } from '../support/shared-log.js';
import { openSharedLog } from '../support/shared-log.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { untilTrue } from '../support/until-true.js';

const { uuid } = nodeSystem();

interface Instance extends TestEngine {
  readonly line: LogLine;
}

describe("A run's stream on an instance that does not run it", () => {
  let dir: TempDir;
  let shared: SharedLog;
  let runner: Instance;
  let watcher: Instance;

  const open = async (model: LanguageModel): Promise<Instance> => {
    const line = shared.line();
    const cluster = { heartbeatMs: 50, suspectAfterMs: 60_000 };
    const path = join(dir.path, uuid());
    const engine = await openTestEngine({ path, model, cluster, openLog: () => Promise.resolve(line.log) });
    await engine.recover();
    return { ...engine, line };
  };
  const openBoth = async (model: LanguageModel): Promise<void> => {
    runner = await open(model);
    watcher = await open(scriptedModel(() => 'hold'));
  };
  const start = async (): Promise<string> => {
    const runId = uuid();
    await runner.registry.start(runRequest(runId));
    return runId;
  };
  const follow = (runId: string) => {
    const events: RunEvent[] = [];
    const onEvent = (event: RunEvent): void => void events.push(event);
    let isLive = false;
    const onRead = (): void => void (isLive = true);
    const over = watcher.feed.follow(runId, {
      from: 0,
      onEvent,
      onCaughtUp: onRead,
      signal: new AbortController().signal,
    });
    // The stream reads the log first, which would fail while the log is unreachable.
    const hasStarted = (): boolean => isLive && events.some(({ type }) => type === 'NodeStarted');
    return { events, over, hasStarted };
  };

  beforeEach(async () => {
    dir = tempDir();
    shared = await openSharedLog(dir.path);
  });
  afterEach(async () => {
    watcher.line.turn('up');
    await Promise.all([runner.stop(), watcher.stop()]);
    await shared.close();
    dir.remove();
  });

  it('delivers the complete record while it grows', async () => {
    await openBoth(instantModel());
    const runIds = await Promise.all(Array.from({ length: 20 }, start));
    const streams = runIds.map((runId) => ({ runId, ...follow(runId) }));
    for (const { runId, events, over } of streams) {
      await over;
      expect(events).to.deep.equal(await recordOf(shared.log, runId));
    }
  });

  it('continues without a gap after the subscription was dropped', async () => {
    const model = scriptedModel(() => 'hold');
    await openBoth(model);
    const runId = await start();
    const { events, over, hasStarted } = follow(runId);
    await untilTrue(hasStarted);
    const received = events.length;

    watcher.line.turn('down');
    for (const [index, answer] of ['Draft', '{"score": 9, "feedback": "fine"}'].entries()) {
      await model.called(index + 1);
      model.held[0]?.release(answer);
    }
    await model.called(3);
    await untilTrue(() => watcher.faults.length > 0);
    expect(events).to.have.length(received);

    watcher.line.turn('up');
    await untilTrue(() => events.length > received);
    model.held[0]?.release('Final');
    await over;
    expect(events).to.deep.equal(await recordOf(shared.log, runId));
  });

  it('ends when the instance stops, and can be resumed at another', async () => {
    const model = scriptedModel(() => 'hold');
    await openBoth(model);
    const runId = await start();
    const { events, over, hasStarted } = follow(runId);
    await untilTrue(hasStarted);
    await watcher.stop();
    await over;
    expect(events.at(-1)).to.have.property('type', 'NodeStarted');
    await runner.registry.cancel(runId);
    await allFinished(runner, [runId]);
    const rest: number[] = [];
    const onEvent = ({ seq }: RunEvent): void => void rest.push(seq);
    await runner.feed.follow(runId, { from: events.length, onEvent, signal: new AbortController().signal });
    const { length } = await recordOf(shared.log, runId);
    expect([...events.map(({ seq }) => seq), ...rest]).to.deep.equal(Array.from({ length }, (_, index) => index));
    watcher = await open(instantModel());
  });
});
