import { expect } from 'chai';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runIdOf } from '../../src/run/events.js';
import { startChild } from '../support/child.js';
import { callOfModel, countedCalls, countedModel } from '../support/counted-model.js';
import { openTestEngine } from '../support/open-engine.js';
import { checkRecord, factsOf, recordOf } from '../support/record-of.js';
import { allFinished } from '../support/run-when.js';
import { tempDir } from '../support/temp-dir.js';
import { IS_SOAK, soakIt } from '../support/soak.js';

const CHILD = fileURLToPath(new URL('../support/panels-child.js', import.meta.url));
const PANELS = IS_SOAK ? 1_000 : 100;
/** Heap of a panel of four whose calls are in flight: 38 kB measured. With 10,000, a process then takes less than 1 GB. */
const MAX_BYTES_PER_PANEL = 50_000;

describe(`${PANELS} panels of four in flight in one process`, () => {
  soakIt('take a bounded heap, and after a crash make only the calls without a recorded answer', async () => {
    const dir = tempDir();
    const child = startChild(process.execPath, ['--expose-gc', CHILD, dir.path, String(PANELS)]);
    await child.waitFor((lines) => lines.includes('answered'));
    await child.kill();
    expect(Number(child.lines[0]) / PANELS, 'bytes per panel').to.be.within(1, MAX_BYTES_PER_PANEL);

    const callsFile = join(dir.path, 'calls.txt');
    const model = countedModel(callsFile, { namesModels: true });
    const engine = await openTestEngine({ path: dir.path, model });
    const runIds = new Set<string>();
    for await (const { stream } of engine.log.readAll(null)) {
      const runId = runIdOf(stream);
      if (runId !== null) runIds.add(runId);
    }
    expect(runIds.size).to.equal(PANELS);
    for (const runId of runIds) expect(factsOf(await recordOf(engine.log, runId), 'NodeCompleted')).to.have.length(2);
    await engine.recover();
    await allFinished(engine, [...runIds]);
    const expected = new Map<string, number>();
    for (const runId of runIds) {
      const events = await checkRecord(engine.log, runId);
      expect(factsOf(events, 'PanelClosed').map(({ node, answered }) => [node, answered.length])).to.deep.equal([
        ['ask', 4],
        ['rank', 4],
      ]);
      for (const { model: name, inputHash, step } of factsOf(events, 'NodeStarted')) {
        // The first two members had answered.
        if (step > 2) expected.set(callOfModel(name, inputHash), 1);
      }
    }
    expect([...countedCalls(callsFile)].sort()).to.deep.equal([...expected].sort());
    expect(engine.faults).to.deep.equal([]);
    await engine.stop();
    dir.remove();
  });
});
