import { expect } from 'chai';
import type { Graph, VoteCastData } from '../../../src/generated/schemas.js';
import { chartCache } from '../../../src/run/chart/machine.js';
import type { RunFact, RunFactType } from '../../../src/run/events.js';
import { TransitionRefused } from '../../../src/run/chart/machine.js';
import { runRequest } from '../../support/open-engine.js';
import type { Story } from '../../support/given.js';
import {
  completed,
  decisionFact,
  given,
  graphOf,
  graphWith,
  memberGave,
  nodeStarted,
  stateText,
  playOut,
  RUN_ID,
  toolCalled,
  activeNodes,
  wrote,
} from '../../support/given.js';
import { NO_EFFORT, usageOf } from '../../../src/run/effort.js';
import { finalDraftOf } from '../../../src/run/state.js';
import { flatState } from '../../support/whole-run.js';

const graphs: readonly (readonly [kind: string, graph: Graph])[] = [
  ['that never forks', graphOf('a -> b')],
  ['that forks', graphOf('a -> b, c')],
];

type FactName =
  | RunFactType
  | 'NodeStarted b'
  | 'ToolCalled b'
  | 'NodeCompleted b'
  | 'NodeCompleted, the last'
  | 'NodeFailed b';

const VOTE: VoteCastData = {
  gate: 1,
  action: 'approve',
  modifiedState: null,
  actor: 'ann',
  comment: null,
  shownDraftHash: null,
  keyHash: null,
  bodyHash: 'b',
};

const AT = '2026-01-01T00:00:00.000Z';
const NO_ANSWERS = { answered: [], failed: [], discarded: [], result: null, route: { next: [], reason: '' } };

/** One fact of each type. Of the facts about nodes, one is for an active node and one for another. */
function factsOn(graph: Graph): Readonly<Record<FactName, RunFact>> {
  const owner = { epoch: 1, instanceId: 'one' };
  const usage = { inputTokens: 0, outputTokens: 0 };
  const attempt = { step: 1, attempt: 1 };
  const done = { ...attempt, output: { draft: 'd' }, usage, durationMs: 0, route: { next: ['b'], reason: '' } };
  const failed = { ...attempt, kind: 'k', message: 'm', retryable: true };
  return {
    RunRequested: { type: 'RunRequested', data: runRequest(RUN_ID, { graph }) },
    RunClaimed: { type: 'RunClaimed', data: { ...owner, reason: 'recovered' } },
    RunReleased: { type: 'RunReleased', data: { ...owner, reason: 'shutdown' } },
    RunStarted: { type: 'RunStarted', data: { epoch: 1 } },
    RunResumed: { type: 'RunResumed', data: { epoch: 1, gate: 1, nextNodes: ['a'] } },
    NodeStarted: nodeStarted({ node: 'a', ...attempt }),
    'NodeStarted b': nodeStarted({ node: 'b', step: 2, attempt: 1 }),
    ChildStarted: {
      type: 'ChildStarted',
      data: { node: 'a', step: 1, index: 0, child: RUN_ID, topicHash: '' },
    },
    ChildEnded: {
      type: 'ChildEnded',
      data: {
        ...{ node: 'a', step: 1, index: 0, child: RUN_ID, status: 'completed', headHash: '', output: 'd' },
        ...{ costUsd: null, usage: usageOf(NO_EFFORT) },
      },
    },
    CallReserved: {
      type: 'CallReserved',
      data: { node: 'a', ...attempt, usage, costUsd: null, reserved: { tokens: 1, usd: null } },
    },
    ToolCalled: toolCalled({ node: 'a', ...attempt }),
    'ToolCalled b': toolCalled({ node: 'b', ...attempt }),
    NodeCompleted: { type: 'NodeCompleted', data: { ...done, node: 'a' } },
    'NodeCompleted b': { type: 'NodeCompleted', data: { ...done, node: 'b' } },
    'NodeCompleted, the last': { type: 'NodeCompleted', data: { ...done, node: 'a', route: { next: [], reason: '' } } },
    NodeFailed: { type: 'NodeFailed', data: { ...failed, node: 'a' } },
    'NodeFailed b': { type: 'NodeFailed', data: { ...failed, node: 'b' } },
    QuorumReached: { type: 'QuorumReached', data: { node: 'a', panelStep: 1, until: AT } },
    PanelClosed: { type: 'PanelClosed', data: { node: 'a', panelStep: 1, ...NO_ANSWERS } },
    RunPaused: { type: 'RunPaused', data: { gate: 1, nextNodes: ['a'], criticScore: null, iteration: 0 } },
    VoteCast: { type: 'VoteCast', data: VOTE },
    PauseEscalated: { type: 'PauseEscalated', data: { gate: 1, to: ['eve'] } },
    GateDecided: decisionFact(given(graph, { godMode: true })),
    RunCompleted: { type: 'RunCompleted', data: { finalDraft: 'd', criticScore: null, iterationCount: null } },
    RunFailed: { type: 'RunFailed', data: { kind: 'internal', error: 'e', node: null } },
  };
}

const STATES = ['pending', 'idle', 'active', 'paused', 'decided', 'completed', 'failed', 'sent', 'ended'] as const;

/**
 * A run in each state. Four are running: `idle` before its first node, `active` with node `a` active, `sent` on its way
 * from `a` to `b`, and `ended` without a live branch.
 */
function storiesOn(graph: Graph): Readonly<Record<(typeof STATES)[number], Story>> {
  const facts = factsOn(graph);
  const pending = given(graph, { pending: true });
  const paused = given(graph, { godMode: true });
  return {
    pending,
    idle: pending.recorded(facts.RunClaimed, facts.RunStarted),
    active: given(graph),
    paused,
    decided: paused.recorded(facts.GateDecided),
    completed: given(graph).recorded(facts['NodeCompleted, the last'], facts.RunCompleted),
    failed: given(graph).recorded(facts.RunFailed),
    sent: given(graph).recorded(facts.NodeCompleted),
    ended: given(graph).recorded(facts['NodeCompleted, the last']),
  };
}

function statusIn(state: (typeof STATES)[number]) {
  switch (state) {
    case 'idle':
    case 'active':
    case 'sent':
    case 'ended':
      return 'running';
    case 'decided':
      return 'paused';
    default:
      return state;
  }
}

/**
 * By fact, a column for each of STATES in its order: the state's first letter if it allows the fact, a dot if it refuses
 * it. The letter `p` is pending in the first column and paused in the fourth.
 */
const ALLOWED: Readonly<Record<FactName, string>> = {
  RunRequested: '.........',
  RunClaimed: 'pia.d..se',
  RunReleased: 'piapd..se',
  RunStarted: 'p........',
  RunResumed: '....d....',
  NodeStarted: '.ia......',
  'NodeStarted b': '.......s.',
  CallReserved: '..a......',
  // No node of these graphs is a council.
  ChildStarted: '.........',
  ChildEnded: '.........',
  ToolCalled: '..a......',
  'ToolCalled b': '.........',
  NodeCompleted: '..a......',
  'NodeCompleted b': '.........',
  'NodeCompleted, the last': '..a......',
  NodeFailed: '..a......',
  'NodeFailed b': '.........',
  QuorumReached: '.........',
  PanelClosed: '.........',
  RunPaused: '.i.....se',
  VoteCast: '...p.....',
  PauseEscalated: '.........',
  GateDecided: '...p.....',
  RunCompleted: '........e',
  RunFailed: 'piapd..se',
};

for (const [kind, graph] of graphs) {
  describe(`The chart of a graph ${kind}`, () => {
    const stories = storiesOn(graph);
    const facts = Object.entries(factsOn(graph));

    it('is in the state of its run', () => {
      for (const state of STATES) {
        const { run, snapshot } = stories[state];
        const status = statusIn(state);
        expect(run.phase.status).to.equal(status);
        expect(snapshot.matches(status)).to.equal(true);
      }
    });

    for (const [name, fact] of facts) {
      it(`allows ${name} in the right states only`, () => {
        const found = STATES.map((state) => (isAllowed(stories[state], fact) ? state.charAt(0) : '.')).join('');
        expect(found).to.equal(ALLOWED[name as keyof typeof ALLOWED]);
      });
    }

    it("keeps the snapshot when it refuses an event, and names the run's state", () => {
      const { active } = stories;
      const before = stateText(active.run);
      const resume = factsOn(graph).RunResumed;
      expect(() => active.recorded(resume)).to.throw(
        TransitionRefused,
        `Run "${RUN_ID}" is running: RunResumed (seq 4) cannot follow seq 3`,
      );
      expect(stateText(active.run)).to.equal(before);
    });

    it('refuses an event that is not the next one', () => {
      const { chart, snapshot, run } = stories.active;
      for (const seq of [run.head.seq - 1, run.head.seq, run.head.seq + 2, Number.NaN]) {
        const fact = { ...factsOn(graph).RunFailed, seq, id: '', at: '', hash: '' };
        expect(() => chart.next(snapshot, fact), `seq ${seq}`).to.throw(TransitionRefused);
      }
    });

    it('refuses events of unknown nodes', () => {
      for (const node of ['c?', 'unknown', 'n0', '', '*', '__proto__', 'constructor']) {
        const fact = nodeStarted({ node, step: 2, attempt: 1 });
        expect(isAllowed(stories.idle, fact), node).to.equal(false);
      }
    });

    it('starts with RunRequested at revision 0 only', () => {
      const { chart, events } = stories.active;
      const [first, second] = events;
      expect(() => chart.first(undefined)).to.throw('A run begins with RunRequested at seq 0, not with undefined');
      expect(() => chart.first(second)).to.throw('not with RunClaimed at seq 1');
      expect(() => chart.first(first && { ...first, seq: 1 })).to.throw('not with RunRequested at seq 1');
    });
  });
}

function isAllowed(story: Story, fact: RunFact): boolean {
  try {
    story.recorded(fact);
    return true;
  } catch (error) {
    if (error instanceof TransitionRefused) return false;
    throw error;
  }
}

describe('The chart', () => {
  it('refuses the end of a run of which a branch is in flight or a node has not begun', () => {
    const half = given(graphOf('plan -> left, right')).whenAll(wrote('plan'), wrote('left'));
    const sent = storiesOn(graphOf('a -> b')).sent;
    for (const [story, finalDraft] of [
      [half, 'by left'],
      [sent, null],
    ] as const) {
      const data = { finalDraft, criticScore: null, iterationCount: null };
      expect(isAllowed(story, { type: 'RunCompleted', data })).to.equal(false);
    }
  });

  it('refuses the answer of a juror without a score', () => {
    const members = ['one', 'two'].map((id) => ({ id, label: id }));
    const jury = given(graphWith([{ id: 'jury', role: 'critic', members }], []));
    const [fact] = jury.when(memberGave('one', { score: 5, feedback: '' })).facts;
    if (fact?.type !== 'NodeCompleted') throw new Error('No juror has answered');
    expect(isAllowed(jury, fact)).to.equal(true);
    expect(isAllowed(jury, { ...fact, data: { ...fact.data, output: { draft: 'x' } } })).to.equal(false);
  });
});

describe('The regions of a chart', () => {
  it('are active for nodes in flight', () => {
    const graph = graphOf('plan -> a, b; a, b -> meet');
    const activeIn = ({ snapshot }: Story): readonly string[] =>
      graph.nodes.filter((_, at) => snapshot.matches({ running: { [`n${at}`]: 'active' } })).map(({ id }) => id);
    let story = given(graph);
    for (const [done, active] of [
      ['plan', ['a', 'b']],
      ['b', ['a']],
      ['a', ['meet']],
    ] as const) {
      story = story.when(wrote(done));
      expect(activeIn(story)).to.deep.equal(active);
    }
  });
});

const ODD_IDS = [
  'a.b',
  '.',
  '#a',
  '*',
  '0',
  'n0',
  'idle',
  '__proto__',
  'constructor',
  '\n',
  '\u{1f600}',
  'x'.repeat(128),
];

describe('Odd node ids', () => {
  const link = (source: string, target: string, condition: string | null = null) => ({
    id: `${source}->${target}`,
    source,
    target,
    condition,
  });

  it('run side by side', () => {
    const edges = ODD_IDS.map((id) => link('start', id));
    const graph = graphWith([{ id: 'start' }, ...ODD_IDS.map((id) => ({ id }))], edges);
    const front = given(graph).when(wrote('start'));
    expect(activeNodes(front.run)).to.deep.equal(ODD_IDS);
    const { run } = playOut(front, (node) => wrote(node));
    expect(finalDraftOf(run)?.split('\n\n## ')).to.have.length(ODD_IDS.length);
  });

  for (const id of ['__proto__', 'constructor', 'toString', 'judge']) {
    it(`count a critic's scores: ${id} asks for rework four times`, () => {
      const graph = graphWith(
        [{ id: 'write' }, { id, role: 'critic' }, { id: 'end' }],
        [link('write', id), link(id, 'write', 'rework'), link(id, 'end', 'approve')],
      );
      const { run } = playOut(given(graph), (node, { progress: { frontier: front } }) =>
        node === id ? () => completed(front[0] ?? { step: 0, attempt: 0 }, { score: 1, feedback: 'f' }) : wrote(node),
      );
      expect(flatState(run)).to.include({ status: 'completed', iterationCount: 6 });
      expect(Object.entries(run.progress.scores)).to.deep.equal([[id, 5]]);
    });
  }
});

describe('Compiled charts', () => {
  const frozen = (name: string) => ({ graph: graphOf(name), graphHash: name });

  it('are kept by graph hash', () => {
    const charts = chartCache();
    expect(charts.of(frozen('a'))).to.equal(charts.of(frozen('a')));
    expect(charts.of(frozen('a'))).not.to.equal(charts.of(frozen('b')));
  });

  it('are dropped beyond the limit, least recently used first', () => {
    const charts = chartCache(2);
    const [a, b] = [charts.of(frozen('a')), charts.of(frozen('b'))];
    expect(charts.of(frozen('a'))).to.equal(a);
    charts.of(frozen('c'));
    expect(charts.of(frozen('a'))).to.equal(a);
    expect(charts.of(frozen('b'))).not.to.equal(b);
  });
});
