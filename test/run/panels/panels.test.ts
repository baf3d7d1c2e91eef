import { expect } from 'chai';
import type { GraphNode } from '../../../src/generated/schemas.js';
import { promptInputFor } from '../../../src/run/frontier/node-start.js';
import type { FrontierNode } from '../../../src/run/state.js';
import type { Story, When } from '../../support/given.js';
import {
  answered,
  completed,
  given,
  graphWith,
  memberBroke,
  memberGave,
  memberStep,
  wrote,
} from '../../support/given.js';

const AT = '2026-01-01T00:00:00.000Z';
const later = (ms: number): string => new Date(Date.parse(AT) + ms).toISOString();

const member = (id: string) => ({ id, label: id.toUpperCase() });
const PANEL: Partial<GraphNode> & { id: string } = {
  id: 'panel',
  role: 'panel',
  countsIteration: true,
  graceMs: 30_000,
  members: ['m1', 'm2', 'm3'].map(member),
};
const edge = (source: string, target: string, condition: string | null = null) => {
  return { id: `${source}->${target}`, source, target, condition };
};
const graph = (fields: Partial<GraphNode> = {}) =>
  graphWith([{ ...PANEL, ...fields }, { id: 'write' }], [edge('panel', 'write')]);

function closed({ events }: Story) {
  return events.flatMap((event) => (event.type === 'PanelClosed' ? [event.data] : []));
}

function typesOf({ facts }: Story): readonly string[] {
  return facts.map(({ type }) => type);
}

describe('A panel', () => {
  it('starts all its members in one append, each with a step and the same number of the panel', () => {
    const starts = given(graph()).events.flatMap((event) => (event.type === 'NodeStarted' ? [event.data] : []));
    expect(starts.map(({ member: who, step, panelStep }) => [who, step, panelStep])).to.deep.equal([
      ['m1', 1, 1],
      ['m2', 2, 1],
      ['m3', 3, 1],
    ]);
    expect(new Set(starts.map(({ inputHash }) => inputHash)).size).to.equal(1);
  });

  it('closes with the answers in the order of its members and counts one iteration and one execution', () => {
    const story = given(graph()).whenAll(answered('m3'), answered('m1'), answered('m2'));
    expect(typesOf(story)).to.deep.equal(['NodeCompleted', 'PanelClosed', 'NodeStarted']);
    const draft = '## M1\nanswer of m1\n\n## M2\nanswer of m2\n\n## M3\nanswer of m3';
    expect(story.run.progress.shown.draft).to.equal(draft);
    expect(story.run.progress).to.include({ iterationCount: 1, executions: 2, steps: 4 });
    expect(closed(story)).to.deep.equal([
      {
        node: 'panel',
        panelStep: 1,
        answered: ['m1', 'm2', 'm3'],
        failed: [],
        discarded: [],
        result: null,
        route: { next: ['write'], reason: 'linear edge' },
      },
    ]);
  });

  it('gives the others its grace once the quorum has answered, and discards later answers', () => {
    const story = given(graph({ quorum: 2 })).whenAll(answered('m2'), answered('m1'));
    expect(typesOf(story)).to.deep.equal(['NodeCompleted', 'QuorumReached']);
    const slow = memberStep(story.run, 'm3');
    expect(slow.seat?.until).to.equal(later(30_000));
    expect(typesOf(story.when({ type: 'ClosePanels', until: later(29_999) }, 'one', later(29_999)))).to.deep.equal([]);
    const inTime = story.when(answered('m3'), 'one', later(29_999));
    expect(closed(inTime)[0]).to.deep.include({ answered: ['m1', 'm2', 'm3'], discarded: [] });
    const due = story.when({ type: 'ClosePanels', until: later(30_000) }, 'one', later(30_000));
    expect(closed(due)[0]).to.deep.include({ answered: ['m1', 'm2'], discarded: ['m3'] });
    expect(due.when(completed(slow, { answer: 'late' })).facts).to.deep.equal([]);
    const late = story.when(answered('m3'), 'one', later(30_000));
    expect(typesOf(late)).to.deep.equal(['PanelClosed', 'NodeStarted']);
    expect(closed(late)).to.deep.equal(closed(due));
  });

  it('closes at once at the quorum with a grace of 0', () => {
    const story = given(graph({ quorum: 1, graceMs: 0 })).when(answered('m2'));
    expect(closed(story)[0]).to.deep.include({ answered: ['m2'], discarded: ['m1', 'm3'] });
    expect(story.run.progress.frontier.map(({ node }) => node)).to.deep.equal(['write']);
  });

  it('goes on without a member whose attempts have failed, and fails below its quorum with all reasons', () => {
    const two = given(graph({ quorum: 2 })).whenAll(
      memberBroke('m1', 500),
      memberBroke('m1'),
      answered('m2'),
      answered('m3'),
    );
    expect(closed(two)[0]).to.deep.include({ answered: ['m2', 'm3'], failed: ['m1'] });
    const story = given(graph({ quorum: 2 })).whenAll(memberBroke('m1'), memberBroke('m3'));
    expect(story.run.phase).to.deep.include({ status: 'failed' });
    expect(story.facts.at(-1)?.data).to.deep.include({
      kind: 'node_failed',
      node: 'panel',
      error: 'Node "panel": fewer than 2 of its 3 members can answer. "m1": The model is ill; "m3": The model is ill',
    });
  });

  it('repeats after a takeover only the calls without a recorded answer', () => {
    const story = given(graph()).when(answered('m2')).when({ type: 'ClaimRun', reason: 'recovered' }, 'two');
    const again = story.facts.flatMap((fact) => (fact.type === 'NodeStarted' ? [fact.data] : []));
    expect(again.map(({ member: who, attempt }) => [who, attempt])).to.deep.equal([
      ['m1', 2],
      ['m3', 2],
    ]);
  });

  it('closes at a takeover after its grace', () => {
    const story = given(graph({ quorum: 2 })).whenAll(answered('m2'), answered('m1'));
    const taken = story.when({ type: 'ClaimRun', reason: 'recovered' }, 'two', later(60_000));
    expect(typesOf(taken)).to.deep.equal(['RunClaimed', 'PanelClosed', 'NodeStarted']);
    const early = story.when({ type: 'ClaimRun', reason: 'recovered' }, 'two', later(1000));
    expect(typesOf(early)).to.deep.equal(['RunClaimed', 'NodeStarted']);
  });
});

describe('A rank', () => {
  const ranking = graphWith(
    [PANEL, { id: 'rank', role: 'rank', countsIteration: false, keep: 2 }, { id: 'write' }],
    [edge('panel', 'rank'), edge('rank', 'write')],
  );
  const all = () => given(ranking).whenAll(answered('m1'), answered('m2'), answered('m3'));

  it('shows each reviewer of the panel the answers of the others, and keeps the best', () => {
    const reviewed = all();
    expect(reviewed.run.progress.frontier.map(({ orderShown }) => [...orderShown].sort())).to.deep.equal([
      ['m2', 'm3'],
      ['m1', 'm3'],
      ['m1', 'm2'],
    ]);
    const prefer =
      (who: string, best: string): When =>
      (run) => {
        const { orderShown, ...step } = memberStep(run, who);
        const first = 'AB'.charAt(orderShown.indexOf(best));
        return completed(step, { ranking: [first, first === 'A' ? 'B' : 'A'], comment: 'c' });
      };
    const story = reviewed.whenAll(prefer('m1', 'm3'), prefer('m2', 'm3'), prefer('m3', 'm2'));
    expect(closed(story)[1]?.result).to.deep.equal({
      points: [
        { member: 'm3', points: 1, rank: 1 },
        { member: 'm2', points: 0.5, rank: 2 },
        { member: 'm1', points: 0, rank: 3 },
      ],
      kept: ['m3', 'm2'],
      agreement: { kendall_w: 1, reviewers: 3, reason: null },
    });
    expect(story.run.progress.shown.draft).to.equal('## M3\nanswer of m3\n\n## M2\nanswer of m2');
    expect(story.run.progress).to.include({ iterationCount: 1 });
  });

  it('leaves out a reviewer that fails, and fails the run with none left', () => {
    const story = all().whenAll(memberBroke('m1'), memberBroke('m2'));
    expect(story.run.phase.status).to.equal('running');
    const none = story.when(memberBroke('m3'));
    expect(none.facts.at(-1)?.type).to.equal('RunFailed');
  });

  it('without a panel before it fails the run and names the node', () => {
    const alone = graphWith([{ id: 'write' }, { id: 'rank', role: 'rank' }], [edge('write', 'rank')]);
    const story = given(alone).when(wrote('write'));
    expect(story.facts.at(-1)?.data).to.include({ kind: 'node_failed', node: 'rank' });
  });
});

describe('A jury', () => {
  const jury = graphWith(
    [
      { id: 'write' },
      { id: 'critic', role: 'critic', members: ['a', 'b', 'c'].map(member), aggregate: 'median', graceMs: 0 },
      { id: 'end' },
    ],
    [edge('write', 'critic'), edge('critic', 'write', 'rework'), edge('critic', 'end', 'spread > 3')],
  );
  const scores = (...given: readonly number[]): readonly When[] =>
    ['a', 'b', 'c'].map((who, index) => memberGave(who, { score: given[index] ?? 0, feedback: `from ${who}` }));

  it('scores with the aggregate of its members, and reports how they agree over its rounds', () => {
    const first = given(jury).whenAll(wrote('write'), ...scores(5, 7, 6));
    expect(closed(first)[0]?.result).to.deep.equal({
      score: 6,
      aggregate: 'median',
      feedback: '## A\nfrom a\n\n## B\nfrom b\n\n## C\nfrom c',
      agreement: { alpha: null, spread: 2, members: 3, reason: 'one_round' },
    });
    expect(closed(first)[0]?.route.next).to.deep.equal(['write']);
    expect(first.run.progress.shown).to.include({ score: 6, scoreBy: 'critic', verdict: 'rework' });
    const second = first.whenAll(wrote('write'), ...scores(9, 4, 8));
    expect(closed(second)[1]?.route.next).to.deep.equal(['end']);
    expect(closed(second)[1]?.result).to.have.nested.property('agreement.alpha').that.is.a('number');
  });
});

describe('Two panels that join', () => {
  const panel = (id: string, members: readonly string[]): Partial<GraphNode> & { id: string } => ({
    id,
    role: 'panel',
    countsIteration: true,
    graceMs: 0,
    members: members.map(member),
  });
  const joined = (last: Partial<GraphNode> & { id: string }) =>
    graphWith(
      [{ id: 'start' }, panel('one', ['m1', 'm2']), panel('two', ['m1', 'm4']), last],
      [edge('start', 'one'), edge('start', 'two'), edge('one', last.id), edge('two', last.id)],
    );
  const after = (story: Story) => {
    const steps = [...story.run.progress.frontier].filter(({ seat }) => seat !== null);
    const [m1, m2, other1, m4] = steps;
    const give =
      (at: FrontierNode | undefined, answer: string): When =>
      () => {
        if (at === undefined) throw new Error('A member is missing');
        return completed(at, { answer });
      };
    return story.whenAll(give(other1, 'c'), give(m4, 'd'), give(m1, 'a'), give(m2, 'b'));
  };

  it('give a judge the answers of the one that closed last', () => {
    const story = after(given(joined({ id: 'judge', role: 'judge' })).when(wrote('start')));
    const [judge] = story.run.progress.frontier;
    expect([...(judge?.orderShown ?? [])].sort()).to.deep.equal(['m1', 'm2']);
  });

  it('show an agent all answers in one order, without labels, also after an edit by a human', () => {
    const story = after(given(joined({ id: 'end' })).when(wrote('start')));
    const [end] = story.run.progress.frontier;
    if (end === undefined) throw new Error('The end has not started');
    expect([...end.orderShown].sort()).to.deep.equal(['m1', 'm1', 'm2', 'm4']);
    const { draft } = promptInputFor(story.run, end);
    expect(draft)
      .to.match(/## Response [A-D]\na\n/)
      .and.not.match(/M1|M2|M4/);
    const edited = { ...end, branch: { ...end.branch, draft: `Mine\n\n${end.branch.draft}` } };
    expect(promptInputFor(story.run, edited).draft)
      .to.match(/^Mine\n/)
      .and.not.match(/M1|M2|M4/);
  });
});

describe('A panel at the budget', () => {
  it('closes with the answers of its quorum when a retry does not fit', () => {
    const budget = { tokens: 100_000, usd: null, onExceeded: 'finish' as const };
    const node = graph({ quorum: 1, maxOutputTokens: 100, members: ['m1', 'm2'].map(member) });
    const reserved = given(node, { budget }).run.spending?.reserved ?? [];
    const tight = { ...budget, tokens: reserved.reduce((sum, { reservation }) => sum + reservation.tokens, 0) };
    const story = given(node, { budget: tight }).whenAll(answered('m1'), memberBroke('m2', 0));
    expect(closed(story)[0]).to.deep.include({ answered: ['m1'], discarded: ['m2'] });
    expect(story.run.phase.status).to.not.equal('failed');
  });
});
