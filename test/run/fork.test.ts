import { expect } from 'chai';
import { canonical } from '../../src/eventsourcing/canonical-json.js';
import { withFullNames } from '../../src/graph/models-asked.js';
import { nodeSystem } from '../../src/system/system.js';
import { OverrideRefused } from '../../src/run/pauses/override.js';
import { startersOf } from '../../src/run/pauses/approvals.js';
import type { RunRequestedData } from '../../src/generated/schemas.js';
import { schemaCheck } from '../support/schema-check.js';
import type { RunEvent } from '../../src/run/events.js';
import { evolve, firstState } from '../../src/run/evolve.js';
import type { ForkChanges } from '../../src/run/fork.js';
import { executionLimitError, buildForkRequest, planFork } from '../../src/run/fork.js';
import type { RunState } from '../../src/run/state.js';
import { failureOf, finalDraftOf, isFinished, openPauseOf, pauseOf } from '../../src/run/state.js';
import type { Story } from '../support/given.js';
import {
  attemptOf,
  begun,
  broke,
  completed,
  given,
  graphOf,
  graphWith,
  shortText,
  usedTool,
  scored,
  activeNodes,
  wrote,
} from '../support/given.js';
import { drawsOf, named, outputOf, randomGraph, randomStory } from '../support/random-history.js';
import { flatState } from '../support/whole-run.js';
import { plainName } from '../support/open-engine.js';
import { IS_SOAK } from '../support/soak.js';

const HISTORIES = IS_SOAK ? 200 : 3;
/** Forks are played at one of this many events of a history, starting at a different event in each history. */
const STRIDE = IS_SOAK ? 1 : 13;

const { sha256 } = nodeSystem();
const FORK_ID = '00000000-0000-4000-8000-000000000002';
const isRunFold = schemaCheck('run-fold.json');

const COUNCIL = withFullNames(graphOf('write -> judge?; judge -rework-> write; judge -approve-> polish'), plainName);
const DIAMOND = graphOf('plan -> left, right; left -> meet; right -> meet');

/** The first event of a fork at a state. */
function requestAt(run: RunState, changes: Partial<ForkChanges> = {}): RunRequestedData {
  const all = { inputTopic: null, override: null, nodes: [], maxNodeExecutions: null, ...changes };
  return buildForkRequest(run, all, { runId: FORK_ID, bodyHash: 'b', actor: null, fullName: plainName, sha256 });
}

/** The states of a run by revision. */
function statesOf(events: readonly RunEvent[]): readonly RunState[] {
  const [first, ...rest] = events;
  if (first?.type !== 'RunRequested') throw new Error('A run begins with RunRequested');
  const states = [firstState(first)];
  for (const event of rest) states.push(evolve(states.at(-1) ?? firstState(first), event));
  return states;
}

/** The states at which a story can be forked: after every event except the last of a finished run. */
function forkPoints(story: Story): readonly RunState[] {
  return statesOf(story.events).filter((run) => !isFinished(run));
}

/** The run after the last event of a type. */
function after(story: Story, type: RunEvent['type']): RunState {
  const run = statesOf(story.events)[story.events.findLastIndex((event) => event.type === type)];
  if (run === undefined) throw new Error(`No ${type} in ${story.events.map((event) => event.type).join()}`);
  return run;
}

/** Fork points of a council with a panel, a rank, a judge and a jury. */
function deliberatingPoints(): readonly RunState[] {
  const members = ['a', 'b', 'c'].map((id) => ({ id, label: id }));
  const graph = graphWith(
    [
      { id: 'panel', role: 'panel', countsIteration: true, members, quorum: 2, graceMs: 1000 },
      ...[
        { id: 'rank', role: 'rank' as const, keep: 2 },
        { id: 'judge', role: 'judge' as const },
      ],
      { id: 'jury', role: 'critic', members, aggregate: 'lowest', graceMs: 1000 },
      { id: 'end' },
    ],
    [
      ['panel', 'rank'],
      ['rank', 'judge'],
      ['judge', 'jury'],
      ['jury', 'end'],
    ].map(([source = '', target = '']) => ({ id: source, source, target, condition: null })),
  );
  return forkPoints(playedToTheEnd(given(graph).when(broke('panel'))));
}

/** Fork points between the decisions of a council with tool calls, an override, a fork, a join and an ended branch. */
function undecidedPoints(): readonly RunState[] {
  const graph = graphOf('write -> judge?, aside; judge? -rework-> write; judge? -approve-> polish', {
    tools: { webSearch: true, pdfReader: true },
  });
  const hit = { document: '4f2a9c01'.padEnd(64, '0'), page: 1, chunk: 0, score: 1 };
  const played = given(graph, { godMode: true })
    .whenModified({ input_topic: 'Rivers' })
    .whenAll(usedTool('write', [hit]), wrote('write'))
    .whenApproved()
    .whenAll(wrote('aside'), scored('judge', 2))
    .whenApproved();
  return forkPoints(played).filter((run) => pauseOf(run) === null);
}

function pick(record: object, field: string): object {
  return Object.fromEntries(Object.entries(record).filter(([name]) => name === field));
}

/** A fork that no instance has claimed yet. */
function pendingAt(run: RunState): RunState {
  return firstState({ type: 'RunRequested', data: requestAt(run), seq: 0, id: '', at: '', hash: '' });
}

/** The part of a run that clients see, without its id and origin. */
function seen(run: RunState): unknown {
  const { inputTopic: requestedTopic, godMode, blueprintId, blueprintName, graphHash, limits } = run.request;
  const { inputTopic, scores, iterationCount, activeNode, shown, steps, sources } = run.progress;
  return {
    requestedTopic,
    inputTopic,
    godMode,
    blueprintId,
    blueprintName,
    graphHash,
    limits,
    scores,
    iterationCount,
    activeNode,
    shown,
    steps,
    sources,
  };
}

/** Steps that have no result yet. */
function outstandingIn(run: RunState): readonly number[] {
  return (requestAt(run).state?.front ?? []).filter((each) => each.isOutstanding).map(({ step }) => step);
}

/** Plays the run to its end: each step has the outcome that its number determines, and every pause is approved. */
function playedToTheEnd(story: Story): Story {
  let played = story;
  while (!isFinished(played.run)) {
    const [node] = activeNodes(played.run);
    if (node === undefined) {
      played = played.whenApproved();
    } else {
      const at = attemptOf(played.run, node);
      played = played.when(completed(at, outputOf(played.run, node, at.step)));
    }
  }
  return played;
}

/** The result of a run. */
function endOf({ run }: Story): unknown {
  const { iterationCount, scores, shown, steps } = run.progress;
  return failureOf(run) ?? { finalDraft: finalDraftOf(run), iterationCount, scores, shown, steps };
}

function stepsOf(events: readonly RunEvent[], type: 'NodeStarted' | 'NodeCompleted'): readonly number[] {
  return events.flatMap((event) => (event.type === type && 'step' in event.data ? [event.data.step] : []));
}

describe('A fork at every event of random histories', () => {
  const stories: Story[] = [];
  const everywhere = (check: (point: RunState, story: Story) => void, stride = 1): void => {
    stories.forEach((story, index) => {
      for (const point of forkPoints(story).filter(({ head }) => (head.seq + index) % stride === 0))
        named(index + 1, () => {
          try {
            check(point, story);
          } catch (error) {
            if (error instanceof Error) error.message = `at ${point.head.seq}: ${error.message}`;
            throw error;
          }
        });
    });
  };

  before(() => {
    for (let seed = 1; seed <= HISTORIES; seed += 1) stories.push(randomStory(seed));
  });

  it('shows the same state as its parent', () => {
    everywhere((point) => {
      const run = pendingAt(point);
      expect(seen(run)).to.deep.equal(seen(point));
      expect(run.request.parent).to.deep.equal({ runId: point.runId, at: point.head.seq, hash: point.head.hash });
    });
  });

  it('records a state that fits its schema and survives JSON', () => {
    everywhere((point) => {
      const { state } = requestAt(point);
      expect(isRunFold(state), JSON.stringify(isRunFold.errors)).to.equal(true);
      expect(JSON.parse(JSON.stringify(state))).to.deep.equal(state);
    });
  });

  it('repeats outstanding calls, keeps a pause, and reuses all results', () => {
    let forks = 0;
    everywhere((point, story) => {
      const fork = begun(requestAt(point));
      const done = stepsOf(story.events.slice(0, point.head.seq + 1), 'NodeCompleted');
      const outstanding = outstandingIn(point);
      expect(planFork(begun(requestAt(point)).facts).reusedResults).to.equal(
        point.request.parent === null ? done.length : -1,
      );
      const pause = openPauseOf(point);
      if (pause !== null) {
        expect(openPauseOf(fork.run)).to.include({ number: pause.number });
        expect(openPauseOf(fork.run)?.nextNodes).to.deep.equal(pause.nextNodes);
      }
      const started = stepsOf(fork.events, 'NodeStarted');
      if (fork.run.phase.status === 'running') expect(started.slice(0, outstanding.length)).to.deep.equal(outstanding);
      const played = playedToTheEnd(fork);
      const called = stepsOf(played.events, 'NodeStarted');
      expect(new Set(called).size).to.equal(called.length);
      expect(called.filter((step) => done.includes(step))).to.deep.equal([]);
      const failed = point.progress.frontier.filter(({ seat }) => (seat?.error ?? null) !== null).length;
      const unanswered = point.progress.unanswered + failed;
      expect(new Set([...done, ...called]).size).to.equal(played.run.progress.steps - unanswered);
      forks += 1;
    }, STRIDE);
    process.stderr.write(`      ${forks} forks of ${stories.length} histories\n`);
  });
});

describe('A fork at every event of an undisturbed run', () => {
  for (const godMode of [false, true]) {
    // A run in God Mode has three times as many events.
    const stride = godMode && !IS_SOAK ? 3 * STRIDE : STRIDE;
    it(`reaches the same end${godMode ? ' in God Mode' : ''}`, () => {
      for (let seed = 1; seed <= HISTORIES; seed += godMode ? 4 : 1) {
        named(seed, () => {
          const parent = playedToTheEnd(given(randomGraph(drawsOf(seed)), { godMode }));
          for (const point of forkPoints(parent).filter((each) => (each.head.seq + seed) % stride === 0)) {
            const fork = playedToTheEnd(begun(requestAt(point)));
            expect(endOf(fork), `at ${point.head.seq}`).to.deep.equal(endOf(parent));
            const left = [...outstandingIn(point), ...stepsOf(parent.events.slice(point.head.seq + 1), 'NodeStarted')];
            expect(stepsOf(fork.events, 'NodeStarted')).to.have.members([...new Set(left)]);
          }
        });
      }
    });
  }
});

describe('A fork', () => {
  it('repeats a failed attempt, also if it ended the parent', () => {
    const parent = given(COUNCIL).when(broke('write', 5)).when(broke('write'));
    expect(failureOf(parent.run)?.kind).to.equal('node_failed');
    const fork = begun(requestAt(after(parent, 'NodeFailed')));
    expect(fork.facts.map(shortText).at(-1)).to.equal('NodeStarted write 1.1');
    expect(fork.run.progress.frontier[0]?.failures).to.equal(0);
  });

  it('repeats a node that was using tools', () => {
    const hit = { document: 'd'.repeat(64), page: 3, chunk: 1, score: 0.5 };
    const fork = begun(requestAt(given(COUNCIL).when(usedTool('write', [hit])).run));
    expect(fork.facts.map(shortText).at(-1)).to.equal('NodeStarted write 1.1');
    expect(fork.run.progress.sources).to.deep.equal(['dddddddd:3']);
  });

  it('of a half-done frontier runs only the missing nodes, then joins all', () => {
    const parent = given(DIAMOND).whenAll(wrote('plan'), wrote('right'));
    const fork = begun(requestAt(parent.run));
    expect(activeNodes(fork.run)).to.deep.equal(['left']);
    const joined = fork.whenAll(wrote('left'), wrote('meet'));
    expect(joined.run.progress.frontier[0]?.branch.draftFrom).to.equal('4');
    expect(flatState(joined.run)).to.include({ status: 'completed', iterationCount: 4 });
    expect(endOf(joined)).to.deep.equal(endOf(parent.whenAll(wrote('left'), wrote('meet'))));
  });

  it('starts the rest of a frontier that its parent was starting', () => {
    const parent = given(DIAMOND).when(wrote('plan'));
    const [leftStarted] = parent.events.flatMap(({ type, data, seq }) =>
      type === 'NodeStarted' && data.node === 'left' ? [seq] : [],
    );
    const fork = begun(requestAt(statesOf(parent.events)[leftStarted ?? -1] ?? parent.run));
    expect(activeNodes(fork.run)).to.deep.equal(['left', 'right']);
  });

  describe('at a human decision', () => {
    const atJudge = given(COUNCIL, { godMode: true }).whenApproved().when(wrote('write'));
    const approved = atJudge.whenApproved();
    const modified = atJudge.whenModified({ current_draft: 'Theirs' });

    it('keeps the decision if it changes nothing', () => {
      for (const parent of [approved, modified]) {
        for (const type of ['GateDecided', 'RunClaimed'] as const) {
          for (const changes of [{}, { override: {} }, { nodes: [{ id: 'judge' }] }]) {
            const { run } = begun(requestAt(after(parent, type), changes));
            expect(activeNodes(run)).to.deep.equal(['judge']);
            expect(run.progress.shown.draft).to.equal(parent.run.progress.shown.draft);
          }
        }
      }
      expect(modified.run.progress.shown.draft).to.equal('Theirs');
    });

    for (const [what, changes] of [
      ['the topic', { inputTopic: 'Another' }],
      ['the state', { override: { current_draft: 'Mine' } }],
      ['a node', { nodes: [{ id: 'polish', label: 'Polisher' }] }],
      ['the limit of executions', { maxNodeExecutions: 60 }],
    ] as const satisfies readonly (readonly [string, Partial<ForkChanges>])[]) {
      it(`reopens the pause when it changes ${what}`, () => {
        for (const parent of [approved, modified]) {
          const { run } = begun(requestAt(after(parent, 'GateDecided'), changes));
          expect(openPauseOf(run)).to.deep.include({ number: 2, nextNodes: ['judge'] });
          expect(run.progress.shown.draft).to.equal('override' in changes ? 'Mine' : parent.run.progress.shown.draft);
        }
      });
    }

    it('pauses before the nodes of its own route', () => {
      const judged = approved.when(scored('judge', 3)).whenApproved();
      const requested = requestAt(after(judged, 'GateDecided'), { override: { route_decision: 'approve' } });
      expect(openPauseOf(begun(requested).run)).to.deep.include({ number: 3, nextNodes: ['polish'] });
    });
  });

  describe('at the limit of executions', () => {
    const stopped = given(COUNCIL, { limits: { maxNodeExecutions: 3 } }).whenAll(
      wrote('write'),
      scored('judge', 3),
      wrote('write'),
    );
    const facts = (changes: Partial<ForkChanges> = {}, type: RunEvent['type'] = 'NodeCompleted') =>
      begun(requestAt(after(stopped, type), changes)).facts;

    it('fails at once unless it raises the limit', () => {
      expect(failureOf(stopped.run)?.kind).to.equal('execution_limit');
      expect(executionLimitError(facts())).to.equal(failureOf(stopped.run)?.error);
      expect(executionLimitError(facts({ maxNodeExecutions: 2 }))).to.include('limit of 2');
      const raised = requestAt(after(stopped, 'NodeCompleted'), { maxNodeExecutions: 4 });
      expect(raised.limits).to.deep.equal({ ...stopped.run.request.limits, maxNodeExecutions: 4 });
      expect(raised.changes).to.include({ maxNodeExecutions: true });
      const more = begun(raised);
      expect(activeNodes(more.run)).to.deep.equal(['judge']);
      expect(failureOf(more.when(scored('judge', 9)).run)?.error).to.include('limit of 4');
    });
  });

  it('fails where its parent had no route, unless it changes the route', () => {
    const graph = graphOf('write -> judge?; judge -approve-> polish');
    const parent = given(graph).whenAll(wrote('write'), scored('judge', 3));
    const point = after(parent, 'NodeCompleted');
    expect(failureOf(begun(requestAt(point)).run)).to.deep.equal(failureOf(parent.run));
    expect(planFork(begun(requestAt(point)).facts)).to.deep.equal({ reusedResults: 2, nextNodes: [] });
    const shown = requestAt(point, { override: { route_decision: 'approve' } });
    expect(activeNodes(begun(shown).run)).to.deep.equal(['polish']);
    const elsewhere = (): unknown => requestAt(point, { override: { critic_score: 2 } });
    expect(elsewhere).to.throw(OverrideRefused);
  });
});

describe('The changes of a fork', () => {
  const atJudge = given(COUNCIL).when(wrote('write'));

  it('can replace the topic', () => {
    const { run } = begun(requestAt(atJudge.run, { inputTopic: 'Another' }));
    expect(flatState(run)).to.include({ requestedTopic: 'Another', inputTopic: 'Another' });
  });

  it('route the last node again if it was the only one of its frontier', () => {
    const point = after(atJudge.when(scored('judge', 9)), 'NodeCompleted');
    expect(activeNodes(begun(requestAt(point)).run)).to.deep.equal(['polish']);
    expect(activeNodes(begun(requestAt(point, { override: { critic_score: 3 } })).run)).to.deep.equal(['write']);
  });

  it('of the fallbacks of a node change which models follow its own', () => {
    const requested = requestAt(atJudge.run, { nodes: [{ id: 'judge', fallbacks: ['two/model-2'] }] });
    expect(begun(requested).run.plan.node('judge').fallbacks).to.deep.equal(['two/model-2']);
    expect(requested.changes?.nodes).to.deep.equal([{ id: 'judge', fields: ['fallbacks'] }]);
  });

  it("of nodes make a new graph and keep the parent's", () => {
    const tools = { webSearch: true };
    const requested = requestAt(atJudge.run, { nodes: [{ id: 'judge', systemPrompt: 'Be kind', model: 'm', tools }] });
    const { plan, request } = begun(requested).run;
    expect(plan.node('judge')).to.deep.include({ systemPrompt: 'Be kind', model: 'm', role: 'critic' });
    expect(plan.node('judge').tools).to.deep.equal({ webSearch: true, pdfReader: false });
    expect(plan.node('write')).to.deep.equal(COUNCIL.nodes[0]);
    expect(request.graphHash).not.to.equal(atJudge.run.request.graphHash);
    expect(atJudge.run.plan.node('judge').systemPrompt).to.equal('');
  });
});

describe('The first state of a fork', () => {
  it('stores a shared draft once', () => {
    const draft = 'x'.repeat(100_000);
    const parent = given(DIAMOND).when(wrote('plan', draft));
    expect(JSON.stringify(requestAt(parent.run)).length).to.be.below(110_000);
  });

  it('has every field of its parent', () => {
    const points = [...undecidedPoints(), ...deliberatingPoints()];
    const fresh = given(COUNCIL, { pending: true }).run.progress;
    const unmoved = Object.entries<unknown>({ ...fresh }).filter(([field, initial]) =>
      points.every(({ progress }) => canonical({ [field]: initial }) === canonical(pick(progress, field))),
    );
    expect(unmoved, 'fields that no point of the stories has moved').to.deep.equal([]);
    for (const point of points) {
      const fork = pendingAt(point);
      const untried = { attempt: 0, failures: 0, outage: null, startedAt: '', startedSeq: 0, delayMs: 0, tools: [] };
      const frontier = point.progress.frontier.map((each) => {
        const isOutstanding = outstandingIn(point).includes(each.step);
        const model = each.seat === null || isOutstanding ? null : each.model;
        const seat = each.seat === null ? null : { ...each.seat, until: null };
        return {
          ...each,
          ...untried,
          model,
          seat,
          orderShown: seat === null ? [] : each.orderShown,
          active: isOutstanding,
        };
      });
      expect(fork.progress).to.deep.equal({ ...point.progress, frontier });
      const { bodyHash, parent, graphHash } = fork.request;
      const earlierStarters = startersOf(point.request);
      expect(fork.request).to.deep.equal({ ...point.request, bodyHash, parent, earlierStarters, graphHash });
    }
  });
});
