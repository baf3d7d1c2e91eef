import { expect } from 'chai';
import { nodeSystem } from '../../src/system/system.js';
import { exportLine, readExport } from '../../src/audit/export.js';
import { verifyRecord } from '../../src/audit/verify.js';
import { RunCorrupt } from '../../src/run/errors.js';
import type { ExportedEvent, Fact } from '../../src/eventsourcing/hash-chain.js';
import { GENESIS_HASH, sealEvents } from '../../src/eventsourcing/hash-chain.js';
import type { EventLog } from '../../src/eventlog/port.js';
import { chartCache } from '../../src/run/chart/machine.js';
import type { RunEvent } from '../../src/run/events.js';
import { runStream } from '../../src/run/events.js';
import type { RunState } from '../../src/run/state.js';
import { foldNext, readChecked } from '../../src/run/stream.js';
import { replayRun } from '../../src/run/replay.js';
import type { Upcast } from '../../src/run/events.js';
import { upcast } from '../../src/run/events.js';
import { answerOf } from '../support/golden.js';
import { goldenHistories } from '../support/golden-histories.js';
import { manualSystem } from '../support/manual-system.js';
import { openStoryLog } from '../support/story-log.js';
import { tempDir } from '../support/temp-dir.js';

const { sha256 } = nodeSystem();

/** An invented version 0, in which a draft was a bare text and a pause had no iteration. */
const UPCASTS: readonly Upcast[] = [
  {
    type: 'NodeCompleted',
    to: 1,
    change: (data) => {
      if (!('draftText' in data)) return data;
      const { draftText, ...others } = data;
      return { ...others, output: { draft: draftText } };
    },
  },
  { type: 'RunPaused', to: 1, change: (data) => ({ iteration: 0, ...data }) },
];

/** The fact as version 0 would have written it. */
function downcast({ type, data }: RunEvent): Fact {
  if (type === 'NodeCompleted' && 'draft' in data.output) {
    const { output, ...others } = data;
    return { type, data: { ...others, draftText: output.draft } };
  }
  if (type !== 'RunPaused') return { type, data };
  const { gate, nextNodes, criticScore } = data;
  return { type, data: { gate, nextNodes, criticScore } };
}

describe('A record of an older version', () => {
  const history = goldenHistories().get('god-modify') ?? [];
  const runId = history[0]?.type === 'RunRequested' ? history[0].data.runId : '';
  const facts = history.map(downcast);
  const means = { charts: chartCache(), sha256, upcasts: UPCASTS };
  let log: EventLog;
  let dir: ReturnType<typeof tempDir>;
  let old: readonly ExportedEvent[];

  before(async () => {
    dir = tempDir();
    log = await openStoryLog(dir.path);
    const { uuid: nextId } = manualSystem(99);
    const at = '2025-01-01T00:00:00.000Z';
    const common = { at, nextId, sha256, instanceId: 'i', correlationId: runId, causationId: runId };
    const { events, exported } = sealEvents({ seq: -1, hash: GENESIS_HASH }, facts, common);
    old = exported;
    const written = events.map((event) => ({ ...event, metadata: { ...event.metadata, schemaVersion: '0' } }));
    await log.append(runStream(runId), written, 'none');
  });
  after(async () => {
    await log.close();
    dir.remove();
  });

  const readBack = async (): Promise<readonly RunEvent[]> => {
    const events: RunEvent[] = [];
    for await (const event of readChecked(log, runId, { sha256 })) events.push(event);
    return events;
  };
  /** The folded state without dates and hashes, which depend on the record. */
  const withoutDates = (run: RunState | null | undefined): unknown =>
    run === null || run === undefined ? null : answerOf(run);
  const folded = (events: readonly RunEvent[]): RunState | null =>
    events.reduce<RunState | null>((run, event) => foldNext(runId, run, event, UPCASTS), null);

  it('folds like the current version at every event', async () => {
    const events = await readBack();
    for (let count = 1; count <= events.length; count += 1) {
      expect(withoutDates(folded(events.slice(0, count)))).to.equal(withoutDates(folded(history.slice(0, count))));
    }
  });

  it('is replayed through its chart, from the log and from an export', async () => {
    const replayed = await replayRun(log, runId, means);
    expect(withoutDates(replayed?.snapshot.context.run)).to.equal(withoutDates(folded(history)));
    const { firstDifference, run } = await verifyRecord(runId, readExport(runId, asyncOf(old.map(exportLine))), means);
    expect(firstDifference).to.equal(null);
    expect(withoutDates(run)).to.equal(withoutDates(folded(history)));
  });

  it('is shown and hashed as recorded', async () => {
    const events = await readBack();
    expect(events.map(exportLine)).to.deep.equal(old.map(exportLine));
    expect(events.map(({ data }) => data)).to.deep.equal(facts.map(({ data }) => data));
    expect(events.every(({ schemaVersion }) => schemaVersion === 0)).to.equal(true);
  });

  it('is reported as corrupt by a version without its upcasts', async () => {
    const refused = await replayRun(log, runId, { charts: chartCache(), sha256 }).catch((error: unknown) => error);
    expect(refused).to.be.instanceOf(RunCorrupt);
  });
});

describe('Upcasting', () => {
  const appended = (to: number): Upcast => ({
    type: 'X',
    to,
    change: (data) => ({ way: [...('way' in data && Array.isArray(data.way) ? (data.way as number[]) : []), to] }),
  });
  const changes = [appended(2), appended(3), appended(4)];

  it("applies the changes since the data's version, in order", () => {
    expect(upcast({ type: 'X', data: {}, schemaVersion: 2 }, changes).data).to.deep.equal({ way: [3, 4] });
    expect(upcast({ type: 'X', data: {}, schemaVersion: 1 }, changes).data).to.deep.equal({ way: [2, 3, 4] });
  });
});

async function* asyncOf<T>(items: readonly T[]): AsyncIterable<T> {
  yield* items;
}
