/** Records of runs, and the checks that every record must pass, also after crashes. */
import { expect } from 'chai';
import { nodeSystem } from '../../src/system/system.js';
import type { EventLog } from '../../src/eventlog/port.js';
import { checkLink, GENESIS_HASH } from '../../src/eventsourcing/hash-chain.js';
import { chartCache } from '../../src/run/chart/machine.js';
import type { RunFacts } from '../../src/generated/schemas.js';
import type { RunEvent, RunFactType } from '../../src/run/events.js';
import { readRun } from '../../src/run/stream.js';
import { replayRun } from '../../src/run/replay.js';

const { sha256 } = nodeSystem();

export async function recordOf(log: EventLog, runId: string): Promise<readonly RunEvent[]> {
  const events: RunEvent[] = [];
  for await (const event of readRun(log, runId)) events.push(event);
  return events;
}

/** The data of a run's events of one type. */
export function factsOf<T extends RunFactType>(events: readonly RunEvent[], type: T): readonly RunFacts[T][] {
  const data: RunFacts[T][] = [];
  for (const event of events) if (isOf(event, type)) data.push(event.data);
  return data;
}

function isOf<T extends RunFactType>(
  event: { readonly type: RunFactType },
  type: T,
): event is { readonly type: T; readonly data: RunFacts[T] } {
  return event.type === type;
}

/**
 * Checks a run's record: its hash chain is intact, its chart allows every event, no step ends twice, and each claim has
 * a new epoch.
 */
export async function checkRecord(log: EventLog, runId: string): Promise<readonly RunEvent[]> {
  const events = await recordOf(log, runId);
  let previous = GENESIS_HASH;
  events.forEach((event, index) => {
    expect(event.seq).to.equal(index);
    expect(checkLink(previous, event, sha256), `link ${index} of run ${runId}`).to.equal(true);
    previous = event.hash;
  });
  const replay = await replayRun(log, runId, { charts: chartCache(), sha256 });
  expect(replay?.snapshot.context.run.head.seq).to.equal(events.length - 1);
  expectUnique(factsOf(events, 'NodeCompleted').map(({ step }) => step));
  expectUnique(factsOf(events, 'NodeStarted').map(({ step, attempt }) => `${step}.${attempt}`));
  const epochs = factsOf(events, 'RunClaimed').map(({ epoch }) => epoch);
  expect(epochs).to.deep.equal(epochs.map((_, index) => index + 1));
  const ends = events.filter(({ type }) => type === 'RunCompleted' || type === 'RunFailed');
  expect(ends.length).to.be.at.most(1);
  if (ends.length > 0) expect(events.at(-1)).to.equal(ends[0]);
  return events;
}

function expectUnique(values: readonly (string | number)[]): void {
  expect([...new Set(values)]).to.deep.equal(values);
}
