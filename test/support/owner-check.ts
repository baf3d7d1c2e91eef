import { expect } from 'chai';
import type { EventLog } from '../../src/eventlog/port.js';
import { runStream } from '../../src/run/events.js';

/** Events that only the owner of a run may append. */
const OWNERS_ALONE = new Set([
  ...['RunStarted', 'RunResumed', 'NodeStarted', 'NodeCompleted', 'NodeFailed', 'RunPaused'],
  ...['QuorumReached', 'PanelClosed'],
]);

/** Expects that between two claims only the claimant appended steps. */
export async function expectOneOwner(log: EventLog, runId: string): Promise<void> {
  let owner: string | null = null;
  for await (const { type, data, metadata, revision } of log.readStream(runStream(runId))) {
    const writer = metadata['instanceId'] ?? '';
    if (type === 'RunClaimed') owner = writer;
    if (OWNERS_ALONE.has(type)) expect(writer, `${type} at ${revision} of run ${runId}`).to.equal(owner);
    if (type === 'RunClaimed') expect((JSON.parse(data) as { instanceId: string }).instanceId).to.equal(writer);
    if (type === 'RunReleased' || type === 'RunFailed' || type === 'RunCompleted') owner = null;
  }
}
