import { expect } from 'chai';
import type { Graph, NodeOutput } from '../../src/generated/schemas.js';
import type { RunEvent } from '../../src/run/events.js';
import { evolve, firstState } from '../../src/run/evolve.js';
import type { RunState } from '../../src/run/state.js';
import { isFinished } from '../../src/run/state.js';
import type { Story } from '../support/given.js';
import {
  attemptOf,
  completed,
  failed,
  given,
  graphWith,
  looked,
  plainly,
  resumed,
  underWay,
} from '../support/given.js';
import { seededRandom } from '../support/seeded-random.js';

/** Histories a property is tried on; a soak tries many more. */
const IS_SOAK = process.env['SOAK'] !== undefined;
const HISTORIES = IS_SOAK ? 2_000 : 120;
const TIMEOUT_MS = IS_SOAK ? 600_000 : 20_000;

/** Draws that follow from a seed. */
function drawsOf(seed: number) {
  const random = seededRandom(seed);
  const below = (limit: number): number => Math.floor(random() * limit);
  return { below, chance: (share: number): boolean => random() < share };
}

type Draws = ReturnType<typeof drawsOf>;

/** A graph of up to seven nodes: forks, loops, joins and loose ends as they fall. */
function randomGraph({ below, chance }: Draws): Graph {
  const ids = Array.from({ length: 1 + below(7) }, (_, index) => `n${index}`);
  const nodes = ids.map((id) => ({ id, role: chance(0.35) ? ('critic' as const) : ('agent' as const) }));
  const edges: Graph['edges'] = [];
  const link = (source: string, condition: string | null, at: number): void => {
    const target = ids[at] ?? source;
    edges.push({ id: `e${edges.length}`, source, target, condition });
  };
  nodes.forEach(({ id, role }, index) => {
    const ahead = (): number => (chance(0.75) ? index + 1 + below(3) : below(ids.length));
    if (role === 'critic' && chance(0.7)) {
      link(id, 'rework', below(ids.length));
      if (chance(0.8)) link(id, 'approve', below(ids.length));
    }
    for (let count = below(4); count > 0; count -= 1) {
      const at = ahead();
      if (at < ids.length) link(id, null, at);
    }
  });
  return graphWith(nodes, edges);
}

/** What a step makes of its node: it follows from the step's number alone, so that the order of ends changes nothing. */
function outputOf(run: RunState, node: string, step: number): NodeOutput {
  return run.plan.node(node).role === 'critic'
    ? { score: (step * 7) % 11, feedback: `Feedback ${step}` }
    : { draft: `Draft ${step} by ${node}` };
}

/** One random thing that happens to an unfinished run. */
function anotherEvent(story: Story, draws: Draws): Story {
  const { run } = story;
  if (run.status === 'pending') return story.when({ type: 'ClaimRun', reason: 'started' });
  if (draws.chance(0.01)) return story.when({ type: 'CancelRun' });
  if (run.status === 'paused') return resumed(story, randomDecision(draws));
  if (run.owner === null || draws.chance(0.05)) {
    return story.when({ type: 'ClaimRun', reason: run.owner === null ? 'handover' : 'recovered' }, 'two');
  }
  if (draws.chance(0.05)) return story.when({ type: 'ReleaseRun' });
  const active = underWay(run);
  const at = attemptOf(run, active[draws.below(active.length)] ?? '');
  if (draws.chance(0.2)) return story.when(looked(at.node, [page(draws.below(9))]));
  if (draws.chance(0.1)) return story.when(failed(at, draws.chance(0.9) ? 5 : null));
  return story.when(completed(at, outputOf(run, at.node, at.step)));
}

function page(number: number) {
  return { document: 'd'.repeat(64), page: number, chunk: number, score: 0.5 };
}

function randomDecision({ below, chance }: Draws): Parameters<typeof resumed>[1] {
  if (chance(0.5)) return {};
  const modifiedState = {
    ...(chance(0.3) ? { input_topic: 'Another' } : {}),
    ...(chance(0.3) ? { current_draft: chance(0.2) ? null : `Mine ${below(9)}` } : {}),
    ...(chance(0.3) ? { critic_score: chance(0.2) ? null : below(11) } : {}),
    ...(chance(0.3) ? { iteration_count: below(20) } : {}),
    ...(chance(0.3) ? { feedback_history: ['Mine', 'too'] } : {}),
  };
  return { action: 'modify', modifiedState };
}

/** A whole random history; the harness checks the fold against the chart, on frozen states, at every event. */
function randomStory(seed: number): Story {
  const draws = drawsOf(seed);
  let story = given(randomGraph(draws), { godMode: draws.chance(0.3), pending: draws.chance(0.2) });
  for (let events = 0; events < 400 && !isFinished(story.run); events += 1) story = anotherEvent(story, draws);
  return story;
}

function seeds(): readonly number[] {
  return Array.from({ length: HISTORIES }, (_, index) => index + 1);
}

describe('The fold over random histories', function () {
  this.timeout(TIMEOUT_MS);
  const stories: Story[] = [];

  before('every event is taken by chart and fold alike', () => {
    for (const seed of seeds()) stories.push(named(seed, () => randomStory(seed)));
  });

  it('ends every run', () => {
    for (const { run } of stories) expect(isFinished(run)).to.equal(true);
    const ends = new Set(stories.map(({ run }) => run.failure?.kind ?? 'completed'));
    expect([...ends]).to.include.members(['completed', 'cancelled', 'node_failed', 'no_route', 'execution_limit']);
  });

  it('never executes more nodes than the limit, each step completed at most once', () => {
    for (const { run, events } of stories) {
      const done = events.flatMap((event) => (event.type === 'NodeCompleted' ? [event.data.step] : []));
      expect(new Set(done).size).to.equal(done.length);
      expect(run.steps).to.be.at.most(run.limits.maxNodeExecutions);
    }
  });

  it('gives the same state when it is read back from text', () => {
    for (const { run, events } of stories) {
      const readBack = JSON.parse(JSON.stringify(events)) as readonly RunEvent[];
      expect(plainly(foldOf(readBack))).to.equal(plainly(run));
    }
  });

  it('numbers steps from 1 without a gap, and attempts within each', () => {
    for (const { events } of stories) {
      const attempts = new Map<number, number>();
      for (const event of events) {
        if (event.type !== 'NodeStarted') continue;
        const { step, attempt } = event.data;
        expect(attempt).to.equal((attempts.get(step) ?? 0) + 1);
        if (attempt === 1) expect(step).to.equal(attempts.size + 1);
        attempts.set(step, attempt);
      }
    }
  });

  it('shows an owner exactly while the run is running and was not released', () => {
    for (const { run, events } of stories) {
      expect(run.owner).to.equal(null);
      expect(events.filter(({ type }) => type === 'RunClaimed')).to.have.length(run.epoch);
    }
  });
});

describe('A front over random graphs', function () {
  this.timeout(TIMEOUT_MS);
  it('leads to the same run in whatever order its nodes end', () => {
    for (const seed of seeds()) {
      named(seed, () => {
        const graph = randomGraph(drawsOf(seed));
        const inOrder = playedOut(graph, () => 0);
        const shuffled = drawsOf(seed + 1_000_000);
        const outOfOrder = playedOut(graph, shuffled.below);
        expect(essenceOf(outOfOrder)).to.deep.equal(essenceOf(inOrder));
      });
    }
  });
});

/** A run without mishaps, its nodes ending in the order that is picked. */
function playedOut(graph: Graph, pick: (limit: number) => number): Story {
  let story = given(graph);
  while (!isFinished(story.run)) {
    const active = underWay(story.run);
    const at = attemptOf(story.run, active[pick(active.length)] ?? '');
    story = story.when(completed(at, outputOf(story.run, at.node, at.step)));
  }
  return story;
}

/** What must not depend on the order in which nodes end; a failure may stop a front half done. */
function essenceOf({ run, events }: Story): unknown {
  const started = events.flatMap(({ type, data }) => (type === 'NodeStarted' ? [`${data.step} ${data.node}`] : []));
  if (run.failure !== null) return { started, kind: run.failure.kind };
  const { finalDraft, iterationCount, scores, shown } = run;
  return { started, finalDraft, iterationCount, scores: Object.entries(scores).sort(), shown };
}

function foldOf(events: Story['events']): RunState {
  const [first, ...rest] = events;
  if (first?.type !== 'RunRequested') throw new Error('A run begins with RunRequested');
  return rest.reduce(evolve, firstState(first));
}

/** Says which seed a failure came from. */
function named<T>(seed: number, act: () => T): T {
  try {
    return act();
  } catch (error) {
    if (error instanceof Error) error.message = `seed ${seed}: ${error.message}`;
    throw error;
  }
}
