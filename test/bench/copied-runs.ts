/** A data directory with very many finished runs. */
import { nodeSystem } from '../../src/system/system.js';
import { openDataDirectory } from '../../src/app/data-directory.js';
import { openEmbeddedLog } from '../../src/eventlog/embedded/log.js';
import { openLog } from '../../src/eventlog/open.js';
import type { LanguageModel } from '../../src/models/port.js';
import type { RunFact } from '../../src/run/events.js';
import { runStream } from '../../src/run/events.js';
import { sealAppend } from '../../src/eventsourcing/aggregate.js';
import { factsAfter } from '../../src/run/stream.js';
import { openTestEngine, runRequest } from '../support/open-engine.js';
import { recordOf } from '../support/record-of.js';
import { allFinished } from '../support/run-when.js';
import { closedLoop } from './closed-loop.js';

const AT_ONCE = 100;

/**
 * Fills a folder with runs of the fixed graph: the engine runs one, the others are sealed copies under ids of their own,
 * one append each, because running so many would take minutes.
 */
export async function copiedRuns(
  path: string,
  { model, runs }: { readonly model: LanguageModel; readonly runs: number },
): Promise<void> {
  const system = nodeSystem();
  const facts = await factsOfOneRun(path, model);
  const dataDir = openDataDirectory(path, { pid: process.pid, hostname: '', startedAt: system.now() });
  const log = await openEmbeddedLog({ file: dataDir.logFile });
  const deps = { system, instanceId: 'bench' };
  await closedLoop({
    clients: AT_ONCE,
    goesOn: (acts) => acts < runs - 1,
    act: async () => {
      const runId = system.uuid();
      const copy = facts.map((fact) =>
        fact.type === 'RunRequested' ? { ...fact, data: { ...fact.data, runId } } : fact,
      );
      const { events } = sealAppend(deps, factsAfter(null, runId, copy));
      await log.append(runStream(runId), events, 'none');
    },
  });
  await log.close();
  dataDir.release();
}

async function factsOfOneRun(path: string, model: LanguageModel): Promise<readonly RunFact[]> {
  const engine = await openTestEngine({ path, model, openLog: (at) => openLog({ ...at, eventStore: null }) });
  await engine.recover();
  const runId = nodeSystem().uuid();
  await engine.registry.start(runRequest(runId));
  await allFinished(engine, [runId]);
  const facts = await recordOf(engine.log, runId);
  await engine.stop();
  return facts;
}
