import { expect } from 'chai';
import { createActor } from 'xstate';
import type { Graph } from '../../src/generated/schemas.js';
import type { RunEvent } from '../../src/run/events.js';
import { evolve, firstState } from '../../src/run/evolve.js';
import type { RunState } from '../../src/run/state.js';
import { failureOf, finalDraftOf, isFinished } from '../../src/run/state.js';
import type { Story } from '../support/given.js';
import { attemptOf, completed, given, stateText, activeNodes } from '../support/given.js';
import { drawsOf, named, outputOf, randomGraph, randomStory } from '../support/random-history.js';
import { IS_SOAK } from '../support/soak.js';

const HISTORIES = IS_SOAK ? 2_000 : 30;

function seeds(): readonly number[] {
  return Array.from({ length: HISTORIES }, (_, index) => index + 1);
}

describe('The fold over random histories', () => {
  const stories: Story[] = [];

  before('plays random histories', () => {
    for (const seed of seeds()) stories.push(named(seed, () => randomStory(seed)));
  });

  it('ends every run', () => {
    for (const { run } of stories) expect(isFinished(run)).to.equal(true);
    const ends = new Set(stories.map(({ run }) => failureOf(run)?.kind ?? 'completed'));
    expect([...ends]).to.include.members(['completed', 'cancelled', 'node_failed', 'no_route', 'execution_limit']);
  });

  it('never executes more nodes than the limit, each step completed at most once', () => {
    for (const { run, events } of stories) {
      const done = events.flatMap((event) => (event.type === 'NodeCompleted' ? [event.data.step] : []));
      expect(new Set(done).size).to.equal(done.length);
      expect(run.progress.executions).to.be.at.most(run.request.limits.maxNodeExecutions);
    }
  });

  it('gives the same state from events as text', () => {
    for (const { run, events } of stories) {
      const readBack = JSON.parse(JSON.stringify(events)) as readonly RunEvent[];
      expect(stateText(foldOf(readBack))).to.equal(stateText(run));
    }
  });

  it('has the same transitions as an uncached machine', () => {
    for (const { chart, events } of stories) {
      let snapshot = chart.first(events[0]);
      const live = createActor(chart.machine, { snapshot }).start();
      for (const event of events.slice(1)) {
        live.send(chart.eventOf(event));
        snapshot = chart.next(snapshot, event);
        expect(live.getSnapshot().value).to.deep.equal(snapshot.value);
        expect(live.getSnapshot().status).to.equal(snapshot.status);
      }
    }
  });
});

describe('A frontier over random graphs', () => {
  it("leads to the same run in every order of its nodes' ends", () => {
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

/** A run without failures, whose nodes end in the order that `pick` chooses. */
function playedOut(graph: Graph, pick: (limit: number) => number): Story {
  let story = given(graph);
  while (!isFinished(story.run)) {
    const active = activeNodes(story.run);
    const at = attemptOf(story.run, active[pick(active.length)] ?? '');
    story = story.when(completed(at, outputOf(story.run, at.node, at.step)));
  }
  return story;
}

/**
 * The part of a run that must not depend on the order in which nodes end. A failure may end the run within a frontier.
 */
function essenceOf({ run, events }: Story): unknown {
  const started = events.flatMap(({ type, data }) => (type === 'NodeStarted' ? [`${data.step} ${data.node}`] : []));
  const failure = failureOf(run);
  if (failure !== null) return { started, kind: failure.kind };
  const { iterationCount, scores, shown } = run.progress;
  const finalDraft = finalDraftOf(run);
  return { started, finalDraft, iterationCount, scores: Object.entries(scores).sort(), shown };
}

function foldOf(events: Story['events']): RunState {
  const [first, ...rest] = events;
  if (first?.type !== 'RunRequested') throw new Error('A run begins with RunRequested');
  return rest.reduce(evolve, firstState(first));
}
