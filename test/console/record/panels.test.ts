import { expect } from 'chai';
import { deliberationOf } from '../../../src/audit/deliberation.js';
import type { RunEvent } from '../../../src/client/run-events.js';
import type { Execution, ExecutionTrace, PanelExecution } from '../../../src/console/record/executions.js';
import { traceAt, labelsByLetter, rankingOf } from '../../../src/console/record/executions.js';
import { compareRuns } from '../../../src/console/record/compare.js';
import { graphViewAt } from '../../../src/console/record/graph.js';
import type { DeliberationRecord, MemberAnswer } from '../../../src/generated/schemas.js';
import { timelineAt } from '../../../src/console/record/timeline.js';
import type { Plan } from '../../../src/graph/plan.js';
import { present } from '../../../src/system/element.js';
import { recordOf } from '../../support/console-records.js';
import { goldenHistories } from '../../support/golden-histories.js';
import { randomStory } from '../../support/random-history.js';
import { at, councilOfMinds, forkedAt, openPanelStory } from '../council-of-minds.js';

const EVENTS: readonly RunEvent[] = councilOfMinds().events;
const RECORD = recordOf(EVENTS);
const LAST = EVENTS.length - 1;

describe('A panel in the console', () => {
  it('is one execution with its members, in the order of the node', () => {
    const { executions, edges } = traceOf(LAST);
    expect(executions.map(({ step, node, state }) => `${step} ${node} ${state}`)).to.deep.equal([
      '1 panel done',
      '6 review done',
      '11 judge done',
      '12 chair done',
      '13 jury done',
      '16 chair done',
      '17 jury done',
      '20 editor done',
    ]);
    expect(edges.map(({ from, to }) => `${from}-${to}`)).to.deep.equal([
      ...['0-1', '1-6', '6-11', '11-12', '12-13', '13-16', '16-17', '17-20'],
    ]);
    expect(statesOf(present(executions[0], 'panel'))).to.deep.equal([
      'North answered',
      'East answered',
      'South answered',
      'West discarded',
      'Moon failed',
    ]);
  });

  it('shows after every event what each member was doing then', () => {
    const seen = new Set<string>();
    for (const { seq } of EVENTS) {
      const panel = traceOf(seq).executions.find(({ node }) => node === 'panel');
      if (panel !== undefined) seen.add(`${panel.state}: ${statesOf(panel).join(', ')}`);
    }
    expect([...seen]).to.deep.equal([
      'active: North active, East waiting, South waiting, West waiting, Moon waiting',
      'active: North active, East active, South waiting, West waiting, Moon waiting',
      'active: North active, East active, South active, West waiting, Moon waiting',
      'active: North active, East active, South active, West active, Moon waiting',
      'active: North active, East active, South active, West active, Moon active',
      'active: North answered, East active, South active, West active, Moon active',
      'active: North answered, East active, South active, West active, Moon waiting',
      'active: North answered, East answered, South active, West active, Moon active',
      'active: North answered, East answered, South active, West active, Moon failed',
      'active: North answered, East answered, South answered, West active, Moon failed',
      'done: North answered, East answered, South answered, West discarded, Moon failed',
    ]);
  });

  it('has the model, time, tokens and error of each member', () => {
    const panel = present(traceOf(LAST).executions[0]?.panel, 'panel');
    expect(panel.members.map(({ model, durationMs, error }) => [model, durationMs, error])).to.deep.equal([
      ['sea/large', 3_000, null],
      ['sea/small', 5_000, null],
      ['land/large', 7_000, null],
      ['land/small', 37_000, null],
      ['sky/one', 6_000, 'The model is ill'],
    ]);
    expect(panel.members[0]?.usage).to.deep.equal({ inputTokens: 10, outputTokens: 5, costUsd: null });
    expect(panel.members[4]?.attempts.map(({ ended }) => ended?.how)).to.deep.equal(['failed', 'failed']);
    expect(panel.quorum?.until).to.equal(at(37));
  });

  it('is a node with the number of answers, and a lane that opens into the lanes of its members', () => {
    const view = graphViewAt(RECORD, LAST, traceOf(LAST));
    const node = view?.nodes.find(({ id }) => id === 'panel');
    expect(node).to.include({ state: 'done', doneTimes: 1, failedTimes: 2 });
    expect(node?.members).to.deep.equal(['answered', 'answered', 'answered', 'discarded', 'failed']);
    const lanes = timelineAt(RECORD, LAST, present(EVENTS[LAST], 'event').at)?.lanes ?? [];
    const lane = lanes.find((each) => each.node === 'panel');
    expect(lane?.segments.map(({ number, attempt, label, result }) => [number, attempt, label, result])).to.deep.equal([
      [1, null, '37 s', 'completed'],
    ]);
    expect(lane?.members.map(({ label, segments }) => [label, segments.map(({ result }) => result)])).to.deep.equal([
      ['North', ['completed']],
      ['East', ['completed']],
      ['South', ['completed']],
      ['West', ['discarded']],
      ['Moon', ['failed', null, 'failed']],
    ]);
    expect(lanes.find((each) => each.node === 'jury')?.segments).to.have.lengthOf(2);
  });

  it('that cannot reach its quorum has failed, and its other members are cancelled', () => {
    const story = openPanelStory(5);
    const { executions } = traceOf(story.events.length - 1, recordOf(story.events));
    expect(executions.map(({ state }) => state)).to.deep.equal(['failed']);
    expect(statesOf(present(executions[0], 'panel'))).to.include('West cancelled');
  });
});

describe('Ranks, judges and juries in the console', () => {
  it('resolve letters to the members behind them', () => {
    const [, rank, judge, chair] = traceOf(LAST).executions;
    const west = present(rank?.panel?.members[3], 'West');
    expect(rankingOf(west)).to.deep.equal(['south', 'north', 'east']);
    expect(rank?.panel?.members.map(rankingOf)[4]).to.equal(null);
    const labels = labelsByLetter(present(judge, 'judge'));
    expect([...labels.keys()]).to.deep.equal(['A', 'B']);
    expect([...labels.values()].sort()).to.deep.equal(['North', 'South']);
    expect([...labelsByLetter(present(chair, 'chair')).values()].sort()).to.deep.equal(['North', 'South']);
  });

  it('give the score of a jury to its node', () => {
    const jury = graphViewAt(RECORD, LAST, traceOf(LAST))?.nodes.find(({ id }) => id === 'jury');
    expect(jury).to.include({ lastScore: 9, doneTimes: 2, role: 'critic' });
  });
});

describe('A fork of a deliberation in the console', () => {
  it('in a panel keeps its answers, and shows members whose calls it makes', () => {
    const open = openPanelStory();
    const fork = forkedAt(open, open.events.length - 1);
    const record = recordOf(fork.events);
    const { executions } = traceOf(fork.events.length - 1, record);
    const [panel] = executions;
    expect(panel).to.include({ step: 1, node: 'panel', state: 'active', isInherited: false });
    expect(statesOf(present(panel, 'panel'))).to.deep.equal([
      'North answered',
      'East answered',
      'South answered',
      'West active',
      'Moon failed',
    ]);
    const members = panel?.panel?.members ?? [];
    expect(members.map(({ inherited }) => inherited?.model ?? null)).to.deep.equal([
      ...['sea/large', 'sea/small', 'land/large', null, 'sky/one'],
    ]);
    expect(members[4]?.error).to.equal('The model is ill');
  });

  it('after a panel keeps the answers that the branch carries', () => {
    const whole = councilOfMinds();
    const closed = EVENTS.findIndex(({ type }) => type === 'PanelClosed');
    const fork = forkedAt(whole, closed);
    const { keptAnswers, executions } = traceOf(fork.events.length - 1, recordOf(fork.events));
    expect(keptAnswers.map(({ answers }) => answers.map(({ label }) => label))).to.deep.equal([
      ['North', 'East', 'South'],
    ]);
    expect(executions[0]).to.include({ node: 'panel', isInherited: true, state: 'done' });
  });

  it('compares with its parent: equal up to the fork, a panel as one step', () => {
    const { pairs } = present(
      compareRuns({ record: RECORD, seq: LAST }, { record: recordOf(EVENTS), seq: LAST }, at(100)),
      'comparison',
    );
    expect(pairs.map(({ node, similarity }) => `${node} ${similarity}`)).to.deep.equal([
      ...[
        'panel same',
        'review same',
        'judge same',
        'chair same',
        'jury same',
        'chair same',
        'jury same',
        'editor same',
      ],
    ]);
    const early = EVENTS.findIndex(({ type }) => type === 'PanelClosed') - 1;
    const shorter = compareRuns({ record: RECORD, seq: LAST }, { record: RECORD, seq: early }, at(100));
    expect(shorter?.pairs[0]).to.include({ node: 'panel', similarity: 'differs' });
  });
});

describe('The deliberation in the console', () => {
  it('is the same as that of the service, after every event of any history', async () => {
    const stories = [councilOfMinds(), forkedAt(openPanelStory(), 14), forkedAt(councilOfMinds(), 26)];
    for (const { events } of stories) await expectSameAsService(events, 'story');
    const golden = [...goldenHistories()].filter(([, events]) => events.some(({ type }) => type === 'PanelClosed'));
    expect(golden.length).to.be.greaterThan(0);
    for (const [name, events] of golden) await expectSameAsService(events, name);
    for (let seed = 1; seed <= 12; seed += 1) await expectSameAsService(randomStory(seed).events, `seed ${seed}`);
  });
});

async function expectSameAsService(events: readonly RunEvent[], name: string): Promise<void> {
  const record = recordOf(events);
  const runId = present(record.stateAt(0), 'run').runId;
  for (const { seq } of events) {
    const ofService = present(
      await deliberationOf(runId, (_, fold) => fold(each(events.slice(0, seq + 1)))),
      'deliberation',
    );
    const { plan } = present(record.stateAt(seq), 'state');
    expect(deliberationIn(traceOf(seq, record), plan), `${name} at ${seq}`).to.deep.equal(ofService);
  }
}

async function* each<T>(items: readonly T[]): AsyncGenerator<T> {
  yield* items;
}

/** What the console shows, in the form of the service's answer. */
function deliberationIn({ executions, keptAnswers }: ExecutionTrace, plan: Plan): DeliberationRecord {
  const kept = keptAnswers.flatMap(({ node, panelStep: step, answers }) =>
    answers.map((answer): MemberAnswer => ({ step, node, ...answer, status: 'answered', error: null })),
  );
  const own = executions.flatMap((execution) =>
    execution.panel === null ? [] : [{ ...execution, ...execution.panel }],
  );
  const results = own.flatMap(({ step, node, closed }) => {
    const result = closed?.result ?? null;
    return result !== null && 'points' in result
      ? [{ step, node, points: result.points, agreement: result.agreement }]
      : [];
  });
  return {
    answers: [...kept, ...own.filter(({ role }) => role === 'panel').flatMap(answersIn)],
    rankings: own.filter(({ role }) => role === 'rank').flatMap(rankingsIn),
    results,
    analyses: executions.flatMap(({ step, node, model, orderShown, output }) => {
      const value = output?.value;
      return value !== undefined && 'analysis' in value
        ? [{ step, node, model, order_shown: [...orderShown], analysis: value.analysis }]
        : [];
    }),
    juries: own.filter(({ role }) => role === 'critic').flatMap((jury) => juryIn(jury, plan)),
  };
}

type Own = Execution & PanelExecution;

function answersIn({ step, node, members }: Own): readonly MemberAnswer[] {
  return members.flatMap(({ member, label, model, state, error, output }): readonly MemberAnswer[] => {
    // The console tells members that the end of the run has cut off from those that the end of their panel has.
    const status = state === 'cancelled' ? 'discarded' : state;
    if (status !== 'answered' && status !== 'failed' && status !== 'discarded') return [];
    const value = output?.value;
    const text = value !== undefined && 'answer' in value ? value.answer : null;
    return [{ step, node, member, label, model, text, status, error }];
  });
}

function rankingsIn({ step, node, members }: Own): DeliberationRecord['rankings'] {
  return members.flatMap((reviewer) => {
    const ranking = rankingOf(reviewer);
    const value = reviewer.output?.value;
    if (ranking === null || value === undefined || !('ranking' in value)) return [];
    const { member, model, orderShown } = reviewer;
    const of = { step, node, reviewer: member, model, order_shown: [...orderShown] };
    return [{ ...of, ranking: [...ranking], comment: value.comment }];
  });
}

function juryIn({ step, node, members, closed }: Own, plan: Plan): DeliberationRecord['juries'] {
  const scores = members.flatMap(({ member, model, output }) => {
    const value = output?.value;
    return value !== undefined && 'score' in value ? [{ member, model, ...value }] : [];
  });
  const result = closed?.result ?? null;
  if (scores.length === 0 && closed === null) return [];
  const { score = null, agreement = null } = result !== null && 'score' in result ? result : {};
  const { aggregate = 'median' } = plan.node(node);
  return [{ step, node, scores, aggregate, score, agreement }];
}

function traceOf(seq: number, record = RECORD): ExecutionTrace {
  return present(traceAt(record, seq, record.events[seq]?.at ?? ''), 'trace');
}

function statesOf({ panel }: Execution): readonly string[] {
  return (panel?.members ?? []).map(({ label, state }) => `${label} ${state}`);
}
