import { expect } from 'chai';
import { openPanels } from '../../../src/run/panels/panels.js';
import type { RunState } from '../../../src/run/state.js';
import { isFinished } from '../../../src/run/state.js';
import type { System } from '../../../src/system/system.js';
import { nodeSystem } from '../../../src/system/system.js';
import { graphWith } from '../../support/given.js';
import type { TestEngine } from '../../support/open-engine.js';
import { openTestEngine, runRequest } from '../../support/open-engine.js';
import { checkRecord, factsOf } from '../../support/record-of.js';
import { runWhen } from '../../support/run-when.js';
import { scriptedModel } from '../../support/scripted-model.js';
import type { TempDir } from '../../support/temp-dir.js';
import { tempDir } from '../../support/temp-dir.js';

const { uuid } = nodeSystem();
const HOUR_MS = 3_600_000;
const MEMBERS = ['quick', 'stuck'].map((id) => ({ id, label: id, model: id }));
const ASK = { id: 'ask', role: 'panel', timeoutMs: HOUR_MS, maxAttempts: 1, quorum: 1, graceMs: 500 } as const;

describe('A run that an instance takes whose clock is an hour behind', () => {
  let dir: TempDir;

  beforeEach(() => (dir = tempDir()));
  afterEach(() => dir.remove());

  const behind: System = {
    ...nodeSystem(),
    now: () => new Date(Date.now() - HOUR_MS).toISOString(),
  };
  const opened = async (system: System): Promise<TestEngine> => {
    const model = scriptedModel(({ model: name }) => (name === 'stuck' ? 'hold' : { text: 'An answer.' }));
    const engine = await openTestEngine({ path: dir.path, model, system });
    await engine.recover();
    return engine;
  };

  it('waits for the last members of a panel no longer than its grace, and no time in its record goes back', async () => {
    const runId = uuid();
    const hasQuorum = (run: RunState): boolean => openPanels(run).some(({ until }) => until !== null);
    const first = await opened(nodeSystem());
    await first.registry.start(runRequest(runId, { graph: graphWith([{ ...ASK, members: MEMBERS }], []) }));
    await runWhen(first, runId, hasQuorum);
    await first.stop();

    const second = await opened(behind);
    // With the times of two clocks this takes an hour.
    await runWhen(second, runId, isFinished);
    const events = await checkRecord(second.log, runId);
    await second.stop();
    expect(factsOf(events, 'PanelClosed')[0]).to.deep.include({ answered: ['quick'], discarded: ['stuck'] });
    const times = events.map(({ at }) => at);
    expect(times).to.deep.equal([...times].sort());
  });
});
