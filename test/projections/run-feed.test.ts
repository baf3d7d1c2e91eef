import { expect } from 'chai';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { nodeSystem } from '../../src/system/system.js';
import { RunCorrupt } from '../../src/run/errors.js';
import { ServiceStopping } from '../../src/errors.js';
import type { EventLog, Position, RecordedEvent } from '../../src/eventlog/port.js';
import { RunFeed } from '../../src/projections/run-feed.js';
import type { RunEvent } from '../../src/run/events.js';
import { runStream } from '../../src/run/events.js';
import { changedLog } from '../support/changed-log.js';
import { readerOf } from '../support/reader-of.js';
import { rejectionOf } from '../support/rejection.js';
import { seededRandom } from '../support/seeded-random.js';
import { openStoryLog, recordedStory } from '../support/story-log.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { untilTrue } from '../support/until-true.js';
import { IS_SOAK } from '../support/soak.js';

const SEED = Number(process.env['SEED'] ?? 20260107);
const SCHEDULES = IS_SOAK ? 5_000 : 60;
const { sha256 } = nodeSystem();

describe(`RunFeed (SEED=${SEED})`, () => {
  let dir: TempDir;
  let log: EventLog;
  let runId: string;
  /** The complete record of a run. */
  let story: readonly RecordedEvent[];
  /** The part of the record that is in the log. */
  let recorded: RecordedEvent[];
  let feed: RunFeed;

  before(async () => {
    dir = tempDir();
    log = await openStoryLog(dir.path);
    const events = await recordedStory();
    runId = events[0]?.metadata['$correlationId'] ?? '';
    story = events.map((event, revision) => ({ ...event, revision, stream: runStream(runId), position: at(revision) }));
  });
  after(async () => {
    await log.close();
    dir.remove();
  });
  beforeEach(() => fresh());

  /** A feed of an empty log with slow reads. */
  function fresh(pace: () => Promise<void> = () => Promise.resolve()): void {
    recorded = [];
    const read = async function* (_stream: string, { from = 0 } = {}): AsyncGenerator<RecordedEvent> {
      for (let seq = from; seq < recorded.length; seq += 1) {
        const event = recorded[seq];
        await pace();
        if (event !== undefined) yield event;
      }
    };
    feed = new RunFeed({ reader: readerOf(changedLog(log, { readStream: read })), sha256 });
  }

  /** Records events and delivers them. */
  function record(...events: readonly RecordedEvent[]): void {
    recorded.push(...events);
    events.forEach((event) => feed.onEventFolded(event));
  }

  function follow(from = 0, onEvent: (event: RunEvent) => void = () => undefined) {
    const seqs: number[] = [];
    const leaving = new AbortController();
    const over = feed.follow(runId, {
      from,
      onEvent: (event) => {
        seqs.push(event.seq);
        onEvent(event);
      },
      signal: leaving.signal,
    });
    over.catch(() => undefined);
    return { seqs, over, leave: () => leaving.abort() };
  }

  it('delivers every event once and in order, for any interleaving of reads and live events', async () => {
    const random = seededRandom(SEED);
    for (let schedule = 0; schedule < SCHEDULES; schedule += 1) await followUnderWay(random);
  });

  /** Records a run and delivers its events late and partly twice, while slow watchers come and leave. */
  async function followUnderWay(random: () => number): Promise<void> {
    const pick = (bound: number): number => Math.floor(random() * bound);
    const idle = async (turns: number): Promise<void> => {
      for (let turn = 0; turn < turns; turn += 1) await nextTurn();
    };
    fresh(() => idle(pick(2)));
    const watching = Array.from({ length: 8 }, async () => {
      await idle(pick(40));
      const from = pick(3) === 0 ? Math.min(pick(recorded.length + 1), story.length - 1) : 0;
      const seqs: number[] = [];
      const leaving = new AbortController();
      const last = pick(4) === 0 ? from + pick(story.length - from) : story.length - 1;
      const onEvent = async ({ seq }: RunEvent): Promise<void> => {
        seqs.push(seq);
        if (seq === last) leaving.abort();
        await idle(pick(3));
      };
      await feed.follow(runId, { from, onEvent, signal: leaving.signal });
      expect(seqs).to.deep.equal(Array.from({ length: last + 1 - from }, (_, index) => from + index));
    });
    let told = 0;
    while (told < story.length) {
      recorded.push(...story.slice(recorded.length, recorded.length + pick(4)));
      await idle(pick(3));
      const upTo = Math.min(recorded.length, told + pick(4));
      // A subscription that was dropped delivers some events again.
      for (const event of story.slice(Math.max(0, told - pick(3)), upTo)) feed.onEventFolded(event);
      told = upTo;
    }
    await Promise.all(watching);
    expect(feed.size).to.equal(0);
  }

  it('waits for an unknown run, and ends with its last event', async () => {
    const { seqs, over } = follow();
    await nextTurn();
    record(...story);
    await over;
    expect(seqs).to.have.length(story.length);
  });

  it('ends when its watcher leaves, and keeps nothing of the run', async () => {
    record(...story.slice(0, 3));
    const { seqs, over, leave } = follow();
    await untilTrue(() => seqs.length === 3);
    leave();
    await over;
    record(...story.slice(3));
    expect(seqs).to.have.length(3);
    expect(feed.size).to.equal(0);
  });

  it('ends every watching when it stops, and refuses further ones', async () => {
    record(...story.slice(0, 3));
    const watching = [follow(), follow(2), follow(3)];
    await nextTurn();
    feed.stop();
    await Promise.all(watching.map(({ over }) => over));
    expect(await rejectionOf(follow().over)).to.be.instanceOf(ServiceStopping);
  });

  it('rejects with RunCorrupt when a live event is corrupt', async () => {
    for (const change of [
      (event: RecordedEvent) => ({ ...event, data: event.data.replace('{', '{"more":1,') }),
      (event: RecordedEvent) => ({ ...event, type: 'SomethingElse' }),
      (event: RecordedEvent) => ({ ...event, data: 'null' }),
    ]) {
      fresh();
      record(...story.slice(0, 5));
      const { seqs, over } = follow();
      await untilTrue(() => seqs.length === 5);
      await nextTurn();
      record(...story.slice(5, 6).map(change));
      expect(await rejectionOf(over)).to.be.instanceOf(RunCorrupt);
      expect(seqs).to.deep.equal([0, 1, 2, 3, 4]);
    }
  });

  it('rejects with RunCorrupt when the log lacks a delivered event', async () => {
    record(...story.slice(0, 5));
    const { seqs, over } = follow();
    await untilTrue(() => seqs.length === 5);
    await nextTurn();
    story.slice(6, 7).forEach((event) => feed.onEventFolded(event));
    expect(await rejectionOf(over)).to.be.instanceOf(RunCorrupt);
  });

  it('delivers events to other watchers when one throws', async () => {
    record(...story.slice(0, 3));
    const bad = follow(0, ({ seq }) => {
      if (seq === 4) throw new Error('Oh');
    });
    const good = follow();
    await untilTrue(() => good.seqs.length === 3 && bad.seqs.length === 3);
    await nextTurn();
    record(...story.slice(3));
    expect(await rejectionOf(bad.over)).to.be.instanceOf(Error);
    await good.over;
    expect(good.seqs).to.have.length(story.length);
  });
});

function at(revision: number): Position {
  return String(revision).padStart(6, '0') as Position;
}
