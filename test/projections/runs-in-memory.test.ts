import { expect } from 'chai';
import { Readable } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { nodeSystem } from '../../src/system/system.js';
import { fixedGraph } from '../../src/council/fixed-graph.js';
import type { EventLog, NewEvent, RecordedEvent } from '../../src/eventlog/port.js';
import { RunsInMemory } from '../../src/projections/runs-in-memory.js';
import type { RunEvent } from '../../src/run/events.js';
import { elementAt, present } from '../../src/system/element.js';
import { isFinished } from '../../src/run/state.js';
import { runStream } from '../../src/run/events.js';
import { foldNext, runEventOf } from '../../src/run/stream.js';
import { changedLog } from '../support/changed-log.js';
import { instantModel } from '../support/instant-model.js';
import { openTestEngine, runRequest } from '../support/open-engine.js';
import { recordOf } from '../support/record-of.js';
import { runWhen } from '../support/run-when.js';
import { seededRandom } from '../support/seeded-random.js';
import { openStoryLog, recordedStory, storyReader, appendStory } from '../support/story-log.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import type { RunState } from '../../src/run/state.js';
import { IS_SOAK } from '../support/soak.js';

const SEED = Number(process.env['SEED'] ?? 20260101);
const SCHEDULES = IS_SOAK ? 5_000 : 30;
const { uuid } = nodeSystem();

describe(`RunsInMemory (SEED=${SEED})`, () => {
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

  it('gives watchers every state in order, for any interleaving of loading and live events', async () => {
    const random = seededRandom(SEED);
    for (let schedule = 0; schedule < SCHEDULES; schedule += 1) await watchUnderWay(random);
  });

  /** Watchers come and leave while a run is recorded, folded and loaded, in random order. */
  async function watchUnderWay(random: () => number): Promise<void> {
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
    const reader = storyReader(log);
    const views = new RunsInMemory(storyReader(slow));
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
    const folding = async (): Promise<void> => {
      for (let seq = 0; seq < story.length; seq += 1) {
        while (seq >= recorded) await nextTurn();
        const event = runEventOf(await recordedAt(log, runId, seq));
        // Some events were already folded when they were decided, up to the end of their append.
        const folded = random() < 0.5 ? await reader.fold(runId) : null;
        if (folded === null || !views.adopt(runId, folded)) {
          const run = await views.apply(runId, event);
          expect(run?.head.seq).to.be.at.least(seq);
        }
        await idle(pick(3));
      }
    };
    const notified: number[][] = [];
    const watching = async (): Promise<void> => {
      const seqs: number[] = [];
      const leaving = new AbortController();
      const leavesEarly = random() < 0.3;
      notified.push(seqs);
      await idle(pick(40));
      let end = (): void => undefined;
      const ended = new Promise<void>((resolve) => (end = resolve));
      const onState = ({ head: { seq } }: RunState): void => {
        seqs.push(seq);
        if (leavesEarly || seq === story.length - 1) end();
      };
      expect(await views.watch(runId, { onState, signal: leaving.signal })).to.equal(true);
      await ended;
      leaving.abort();
    };
    await Promise.all([recording(), folding(), watching(), watching(), watching(), watching()]);
    for (const seqs of notified) expect(seqs).to.deep.equal(seqs.map((_, index) => (seqs[0] ?? 0) + index));
    expect(views.size).to.equal(0);
  }

  it('gives watchers every state if the run is evicted between its loading and its watching', async () => {
    const runId = uuid();
    await appendStory(log, runId, story, 0, story.length);
    const events = await recordOf(log, runId);
    const [begun, ...rest] = events;
    const start = foldNext(runId, null, present(begun, 'the request'));
    for (let turns = 0; turns < 12; turns += 1) {
      let recorded = 1;
      const reader = {
        fold: () => Promise.resolve(start),
        events: (_: string, { from = 0 } = {}) => Readable.from(events.slice(from, recorded)),
      };
      // A run without watchers leaves memory with its next event.
      const views = new RunsInMemory(reader, { bounds: { runs: 0, text: 0 } });
      const notified: number[] = [];
      const watching = views.watch(runId, {
        onState: ({ head }) => notified.push(head.seq),
        signal: new AbortController().signal,
      });
      for (let turn = 0; turn < turns; turn += 1) await Promise.resolve();
      for (const event of rest.slice(0, 2)) {
        recorded += 1;
        await views.apply(runId, event);
      }
      await watching;
      for (const event of rest.slice(2, 4)) {
        recorded += 1;
        await views.apply(runId, event);
      }
      expect(notified.at(-1), `${turns} turns`).to.equal(4);
      expect(notified, `${turns} turns`).to.deep.equal(notified.map((_, index) => (notified[0] ?? 0) + index));
    }
  });

  it('returns false for an unknown run and keeps nothing in memory', async () => {
    const views = new RunsInMemory(storyReader(log));
    const watcher = { onState: () => undefined, signal: new AbortController().signal };
    expect(await views.watch(uuid(), watcher)).to.equal(false);
    expect(views.size).to.equal(0);
  });

  it('keeps a finished run in memory until its last watcher leaves', async () => {
    const views = new RunsInMemory(storyReader(log));
    const runId = uuid();
    await appendStory(log, runId, story, 0, story.length);
    const [first, second] = [new AbortController(), new AbortController()];
    await views.watch(runId, { onState: () => undefined, signal: first.signal });
    await views.watch(runId, { onState: () => undefined, signal: second.signal });
    expect(views.size).to.equal(1);
    first.abort();
    expect(views.size).to.equal(1);
    second.abort();
    expect(views.size).to.equal(0);
  });

  it('keeps nothing for a watcher that leaves while the run is loaded', async () => {
    const views = new RunsInMemory(storyReader(log));
    const runId = uuid();
    await appendStory(log, runId, story, 0, story.length);
    const leaving = new AbortController();
    const notified: unknown[] = [];
    const watching = views.watch(runId, { onState: (run) => notified.push(run), signal: leaving.signal });
    leaving.abort();
    expect(await watching).to.equal(true);
    expect(notified).to.deep.equal([]);
    expect(views.size).to.equal(0);
  });

  it('calls no watcher that has left', async () => {
    const views = new RunsInMemory(storyReader(log));
    const runId = uuid();
    await appendStory(log, runId, story, 0, 4);
    const events = await recordOf(log, runId);
    for (const event of events) await views.apply(runId, event);
    const leaving = new AbortController();
    const notified: number[] = [];
    await views.watch(runId, { onState: ({ head }) => notified.push(head.seq), signal: leaving.signal });
    leaving.abort();
    await appendStory(log, runId, story, 4, 6);
    for (const event of await recordOf(log, runId)) await views.apply(runId, event);
    expect(notified).to.deep.equal([3]);
  });

  it('evicts a paused run, and gives a later watcher every state that follows', async () => {
    const graph = fixedGraph({ timeoutMs: 10_000, maxAttempts: 4 });
    const engineDir = tempDir();
    const engine = await openTestEngine({ path: engineDir.path, model: instantModel() });
    const runId = uuid();
    await engine.registry.start(runRequest(runId, { godMode: true, graph }));
    await engine.queries.list({ limit: 1, offset: 0 });
    expect(engine.views.size).to.equal(0);

    const notified: string[] = [];
    const watching = new AbortController();
    await engine.views.watch(runId, { onState: ({ phase }) => notified.push(phase.status), signal: watching.signal });
    expect(engine.views.size).to.equal(1);
    await engine.registry.cancel(runId);
    await runWhen(engine, runId, isFinished);
    expect(notified).to.deep.equal(['paused', 'failed']);
    watching.abort();
    expect(engine.views.size).to.equal(0);
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
      const views = new RunsInMemory({ ...storyReader(log), fold: async () => null, async *events() {} }, { bounds });
      const leaving = new AbortController();
      const [one] = runs;
      await views.apply(present(first, 'run'), elementAt(present(one, 'run').events, 0));
      await views.watch(present(first, 'run'), { onState: () => undefined, signal: leaving.signal });
      for (const { id, events } of runs.slice(1)) await views.apply(id, elementAt(events, 0));
      const held = runs.filter(({ id }) => views.headSeq(id) !== null);
      expect(held.map(({ id }) => id)).to.deep.equal([first, ...others.slice(-3)]);
      leaving.abort();
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
    const views = new RunsInMemory(storyReader(log));
    const runId = uuid();
    await appendStory(log, runId, story, 0, 8);
    const events = await recordOf(log, runId);
    for (const event of [...events, ...events.slice(2), ...events])
      expect((await views.apply(runId, event))?.head.seq).to.be.at.least(event.seq);
    expect(views.size).to.equal(1);
  });
});

async function recordedAt(log: EventLog, runId: string, seq: number): Promise<RecordedEvent> {
  for await (const recorded of log.readStream(runStream(runId), { from: seq, max: 1 })) return recorded;
  throw new Error(`There is no event ${seq}`);
}
