import { nodeSystem } from '../../src/system/system.js';
import { openDataDirectory } from '../../src/app/data-directory.js';
import { openEmbeddedLog } from '../../src/eventlog/embedded/log.js';
import { runStream } from '../../src/run/events.js';
import { sealAppend } from '../../src/eventsourcing/aggregate.js';
import { factsAfter } from '../../src/run/stream.js';
import { given, graphOf, playOut, RUN_ID, wrote } from './given.js';

/** Nodes of the run; each runs three times. */
const NODES = 50;
const DRAFT = 'x'.repeat(120_000);

/** Least number of characters in the drafts of the run: 18 million. */
export const LARGE_RUN_CHARS = 3 * NODES * DRAFT.length;

/** Records a finished run of many large drafts in the embedded log of a folder; its id is `RUN_ID`. */
export async function recordLargeRun(path: string): Promise<void> {
  const system = nodeSystem();
  const ring = Array.from({ length: NODES }, (_, index) => `n${index} -> n${(index + 1) % NODES}`);
  const story = playOut(given(graphOf(ring.join('; '))), (node) => wrote(node, DRAFT));
  const deps = { system, instanceId: 'test' };
  const { events } = sealAppend(deps, factsAfter(null, RUN_ID, story.events));
  const dataDir = openDataDirectory(path, { pid: process.pid, hostname: '', startedAt: system.now() });
  const log = await openEmbeddedLog({ file: dataDir.logFile });
  for (const [seq, event] of events.entries())
    await log.append(runStream(RUN_ID), [event], seq === 0 ? 'none' : seq - 1);
  await log.close();
  dataDir.release();
}
