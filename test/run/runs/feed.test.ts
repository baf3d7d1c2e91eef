import { expect } from 'chai';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { nodeSystem } from '../../../src/system/system.js';
import { RunCorrupt, RunUnknown } from '../../../src/run/errors.js';
import { ServiceStopping } from '../../../src/errors.js';
import type { EventLog, Position, RecordedEvent } from '../../../src/eventlog/port.js';
import { RunFeed } from '../../../src/run/runs/feed.js';
import type { RunEvent } from '../../../src/run/events.js';
import { runStream } from '../../../src/run/events.js';
import { RunStates } from '../../../src/run/runs/states.js';
import type { RunState } from '../../../src/run/state.js';
import { foldNext, runEventOf } from '../../../src/run/stream.js';
import { changedLog } from '../../support/changed-log.js';
import { readerOf } from '../../support/reader-of.js';
import { rejectionOf } from '../../support/rejection.js';
import { seededRandom } from '../../support/seeded-random.js';
import { openStoryLog, recordedStory } from '../../support/story-log.js';
import type { TempDir } from '../../support/temp-dir.js';
import { tempDir } from '../../support/temp-dir.js';
import { untilTrue } from '../../support/until-true.js';
import { IS_SOAK } from '../../support/soak.js';

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
  /** The state after each event of the story. */
  let folded: readonly RunState[];
  let feed: RunFeed;
  let states: RunStates;

  before(async () => {
    dir = tempDir();
    log = await openStoryLog(dir.path);
    const events = await recordedStory();
    runId = events[0]?.metadata['$correlationId'] ?? '';
    story = events.map((event, revision) => ({ ...event, revision, stream: runStream(runId), position: at(revision) }));
    const runs: RunState[] = [];
    for (const event of story) runs.push(foldNext(runId, runs.at(-1) ?? null, runEventOf(event)));
    folded = runs;
  });
  after(async () => {
    await log.close();
    dir.remove();
  });
  beforeEach(() => fresh());

  /** A feed of an empty log with slow reads. */
  function fresh(
    pace: () => Promise<void> = async () => undefined,
    atEnd: () => Promise<void> = async () => undefined,
  ): void {
    recorded = [];
    const read = async function* (_stream: string, { from = 0 } = {}): AsyncGenerator<RecordedEvent> {
      for (let seq = from; seq < recorded.length; seq += 1) {
        const event = recorded[seq];
        await pace();
        if (event !== undefined) yield event;
      }
      await atEnd();
    };
    const reader = readerOf(changedLog(log, { readStream: read }));
    states = new RunStates(reader);
    feed = new RunFeed({ reader, states, sha256 });
  }

  /** Records events and delivers them. */
  function record(...events: readonly RecordedEvent[]): void {
    recorded.push(...events);
    events.forEach((event) => feed.onEventFolded(event, null));
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

  it('reads a piece of the record once for watchers that want it at the same time', async () => {
    let reads = 0;
    fresh(() => {
      reads += 1;
      return nextTurn();
    });
    recorded.push(...story);
    const watchers = Array.from({ length: 50 }, () => follow());
    await Promise.all(watchers.map(({ over }) => over));
    expect(watchers.map(({ seqs }) => seqs.length)).to.deep.equal(watchers.map(() => story.length));
    expect(reads).to.be.at.most(2 * story.length);
  });

  it('misses no event that is recorded while another watcher reads the end of the record', async () => {
    let release = (): void => undefined;
    const atEnd = new Promise<void>((resolve) => (release = resolve));
    fresh(undefined, () => atEnd);
    record(...story.slice(0, -1));
    const first = follow(story.length - 1);
    await nextTurn();
    record(...story.slice(-1));
    const second = follow(story.length - 1);
    await nextTurn();
    release();
    await Promise.all([first.over, second.over]);
    expect([first.seqs, second.seqs]).to.deep.equal([[story.length - 1], [story.length - 1]]);
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
    const watchingStates = Array.from({ length: 8 }, async (_, index) => {
      const isFirst = index % 2 === 0;
      await idle(pick(40));
      while (recorded.length === 0) await nextTurn();
      const seqs: number[] = [];
      const leaving = new AbortController();
      const last = pick(4) === 0 ? pick(story.length) : story.length - 1;
      const onState = (run: RunState): void => {
        const { seq } = run.head;
        seqs.push(seq);
        expect([run.head, run.progress, run.phase]).to.deep.equal([
          folded[seq]?.head,
          folded[seq]?.progress,
          folded[seq]?.phase,
        ]);
        if (seq >= last) leaving.abort();
      };
      const from = isFirst ? 'first' : 'now';
      const end = await feed.follow(runId, { from, onState, signal: leaving.signal });
      const begun = isFirst ? 0 : (seqs[0] ?? -1);
      expect(seqs).to.deep.equal(Array.from({ length: Math.max(1, last + 1 - begun) }, (__, each) => begun + each));
      expect(end?.head.seq).to.equal(seqs.at(-1));
    });
    let told = 0;
    while (told < story.length) {
      recorded.push(...story.slice(recorded.length, recorded.length + pick(4)));
      await idle(pick(3));
      const upTo = Math.min(recorded.length, told + pick(4));
      // A subscription that was dropped delivers some events again.
      for (const event of story.slice(Math.max(0, told - pick(3)), upTo)) {
        // Some events were already folded when they were decided, up to the end of their append.
        const upToEnd = folded[event.revision + pick(3)] ?? null;
        feed.onEventFolded(event, pick(3) === 0 ? upToEnd : await states.fold(runId, runEventOf(event)));
      }
      told = upTo;
    }
    await Promise.all([...watching, ...watchingStates]);
    expect(feed.size).to.equal(0);
    expect(states.size).to.equal(0);
  }

  /** Follows the states of the run from now on. */
  function watch() {
    const seqs: number[] = [];
    const leaving = new AbortController();
    const onState = ({ head }: RunState): void => void seqs.push(head.seq);
    const over = feed.follow(runId, { from: 'now', onState, signal: leaving.signal });
    over.catch(() => undefined);
    return { seqs, over, leave: () => leaving.abort() };
  }

  it('gives a watcher from now on the state at the head, and keeps it in memory until the last one leaves', async () => {
    record(...story);
    const ended = watch();
    expect((await ended.over)?.head.seq).to.equal(story.length - 1);
    expect(ended.seqs).to.deep.equal([story.length - 1]);
    expect(states.size).to.equal(0);
    fresh();
    record(...story.slice(0, 4));
    const [first, second] = [watch(), watch()];
    await untilTrue(() => first.seqs.length === 1 && second.seqs.length === 1);
    expect(states.get(runId)?.head.seq).to.equal(3);
    first.leave();
    await first.over;
    record(...story.slice(4, 6));
    expect([first.seqs, second.seqs]).to.deep.equal([[3], [3, 4, 5]]);
    second.leave();
    await second.over;
    expect([feed.size, states.get(runId)?.head.seq]).to.deep.equal([0, 3]);
  });

  it('refuses to begin now with an unknown run, gives a watcher that leaves at once nothing, and keeps nothing', async () => {
    const unknown = watch();
    expect(await rejectionOf(unknown.over)).to.be.instanceOf(RunUnknown);
    record(...story);
    const gone = watch();
    gone.leave();
    expect(await gone.over).to.equal(null);
    expect([unknown.seqs, gone.seqs, feed.size, states.size]).to.deep.equal([[], [], 0, 0]);
  });

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
    const begins = watch();
    feed.stop();
    await Promise.all(watching.map(({ over }) => over));
    expect([await begins.over, begins.seqs]).to.deep.equal([null, []]);
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
    story.slice(6, 7).forEach((event) => feed.onEventFolded(event, null));
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
