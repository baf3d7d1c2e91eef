import { expect } from 'chai';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { nodeSystem } from '../../../src/system/system.js';
import { fixedGraph } from '../../../src/council/fixed-graph.js';
import type { EventLog, NewEvent, RecordedEvent } from '../../../src/eventlog/port.js';
import type { RunEvent } from '../../../src/run/events.js';
import { runStream } from '../../../src/run/events.js';
import { RunStates } from '../../../src/run/runs/states.js';
import type { RunState } from '../../../src/run/state.js';
import { isFinished } from '../../../src/run/state.js';
import { runEventOf } from '../../../src/run/stream.js';
import { elementAt, present } from '../../../src/system/element.js';
import { changedLog } from '../../support/changed-log.js';
import { instantModel } from '../../support/instant-model.js';
import { openTestEngine, runRequest } from '../../support/open-engine.js';
import { recordOf } from '../../support/record-of.js';
import { runWhen } from '../../support/run-when.js';
import { seededRandom } from '../../support/seeded-random.js';
import { IS_SOAK } from '../../support/soak.js';
import { appendStory, openStoryLog, recordedStory, storyReader } from '../../support/story-log.js';
import type { TempDir } from '../../support/temp-dir.js';
import { tempDir } from '../../support/temp-dir.js';
import { untilTrue } from '../../support/until-true.js';

const SEED = Number(process.env['SEED'] ?? 20260101);
const SCHEDULES = IS_SOAK ? 5_000 : 30;
const { uuid } = nodeSystem();

describe(`RunStates (SEED=${SEED})`, () => {
  let dir: TempDir;
  let log: EventLog;
  let story: readonly NewEvent[];

  before(async () => {
    story = await recordedStory();
  });

  beforeEach(async () => {
    dir = tempDir();
    log = await openStoryLog(dir.path);
  });

  afterEach(async () => {
    await log.close();
    dir.remove();
  });

  it('folds every event and reads up to the head, for any interleaving of loading and delivered events', async () => {
    const random = seededRandom(SEED);
    for (let schedule = 0; schedule < SCHEDULES; schedule += 1) await foldUnderWay(random);
  });

  /** A run is recorded, delivered and read in random order, while holders come and leave. */
  async function foldUnderWay(random: () => number): Promise<void> {
    const pick = (bound: number): number => Math.floor(random() * bound);
    const idle = async (turns: number): Promise<void> => {
      for (let turn = 0; turn < turns; turn += 1) await nextTurn();
    };
    const slow = changedLog(log, {
      async *readStream(stream, range) {
        for await (const event of log.readStream(stream, range)) {
          await idle(pick(3));
          yield event;
        }
        await idle(pick(6));
      },
    });
    const states = new RunStates(storyReader(slow), random() < 0.3 ? { runs: 0, text: 0 } : undefined);
    const runId = uuid();
    let recorded = 1 + pick(4);
    await appendStory(log, runId, story, 0, recorded);
    const recording = async (): Promise<void> => {
      while (recorded < story.length) {
        await idle(pick(4));
        const to = Math.min(story.length, recorded + 1 + pick(3));
        await appendStory(log, runId, story, recorded, to);
        recorded = to;
      }
    };
    const delivering = async (): Promise<void> => {
      for (let seq = 0; seq < story.length; seq += 1) {
        while (seq >= recorded) await nextTurn();
        const run = await states.fold(runId, runEventOf(await recordedAt(log, runId, seq)));
        expect(run?.head.seq).to.be.at.least(seq);
        await idle(pick(3));
      }
    };
    const reading = async (): Promise<void> => {
      await idle(pick(40));
      const release = states.hold(runId);
      const isRecorded = recorded;
      const run = await states.newest(runId);
      expect(run?.head.seq).to.be.at.least(isRecorded - 1);
      await idle(pick(3));
      expect(states.get(runId)?.head.seq).to.be.at.least(run?.head.seq ?? 0);
      release();
    };
    await Promise.all([recording(), delivering(), reading(), reading(), reading(), reading()]);
    expect(states.size).to.equal(0);
  }

  it('returns null for an unknown run and keeps nothing in memory', async () => {
    const states = new RunStates(storyReader(log));
    const runId = uuid();
    const release = states.hold(runId);
    expect(await states.newest(runId)).to.equal(null);
    release();
    expect(states.size).to.equal(0);
  });

  it('evicts a paused run, and gives a later watcher every state that follows', async () => {
    const graph = fixedGraph({ timeoutMs: 10_000, maxAttempts: 4 });
    const engineDir = tempDir();
    const engine = await openTestEngine({ path: engineDir.path, model: instantModel() });
    const runId = uuid();
    await engine.registry.start(runRequest(runId, { godMode: true, graph }));
    await runWhen(engine, runId, ({ phase }) => phase.status === 'paused');
    await untilTrue(() => engine.states.size === 0);

    const notified: string[] = [];
    const watching = new AbortController();
    const onState = ({ phase }: RunState): void => void notified.push(phase.status);
    const over = engine.feed.follow(runId, { from: 'now', onState, signal: watching.signal });
    await untilTrue(() => notified.length > 0);
    expect(engine.states.size).to.equal(1);
    await engine.registry.cancel(runId);
    await runWhen(engine, runId, isFinished);
    expect(notified).to.deep.equal(['paused', 'failed']);
    await over;
    expect(engine.states.size).to.equal(0);
    await engine.stop();
    engineDir.remove();
  });

  it('evicts the least recently used runs beyond its bounds of runs and text, never watched ones', async () => {
    const runs = await manyRuns(6, 2);
    const [first, ...others] = runs.map(({ id }) => id);
    for (const bounds of [
      { runs: 3, text: Number.MAX_SAFE_INTEGER },
      { runs: 100, text: 4 * 'The sea'.length },
    ]) {
      const states = new RunStates({ ...storyReader(log), fold: async () => null }, bounds);
      const [one] = runs;
      await states.fold(present(first, 'run'), elementAt(present(one, 'run').events, 0));
      const release = states.hold(present(first, 'run'));
      for (const { id, events } of runs.slice(1)) await states.fold(id, elementAt(events, 0));
      const kept = runs.filter(({ id }) => states.get(id) !== null);
      expect(kept.map(({ id }) => id)).to.deep.equal([first, ...others.slice(-3)]);
      release();
    }
  });

  /** The first events of runs that differ only in their id. */
  async function manyRuns(
    count: number,
    length: number,
  ): Promise<readonly { id: string; events: readonly RunEvent[] }[]> {
    const templateId = uuid();
    await appendStory(log, templateId, story, 0, length);
    const events = await recordOf(log, templateId);
    return Array.from({ length: count }, () => {
      const id = uuid();
      return { id, events: JSON.parse(JSON.stringify(events).replaceAll(templateId, id)) as readonly RunEvent[] };
    });
  }

  it('skips events that it has folded already', async () => {
    const states = new RunStates(storyReader(log));
    const runId = uuid();
    await appendStory(log, runId, story, 0, 8);
    const events = await recordOf(log, runId);
    for (const event of [...events, ...events.slice(2), ...events])
      expect((await states.fold(runId, event))?.head.seq).to.be.at.least(event.seq);
    expect(states.size).to.equal(1);
  });
});

async function recordedAt(log: EventLog, runId: string, seq: number): Promise<RecordedEvent> {
  for await (const recorded of log.readStream(runStream(runId), { from: seq, max: 1 })) return recorded;
  throw new Error(`There is no event ${seq}`);
}
