import { expect } from 'chai';
import { verifyRecord } from '../../../src/audit/verify.js';
import { sealAppend } from '../../../src/eventsourcing/aggregate.js';
import { chartCache } from '../../../src/run/chart/machine.js';
import { factsAfter } from '../../../src/run/stream.js';
import { nodeSystem } from '../../../src/system/system.js';
import type { Approvals, GateChoice, Graph } from '../../../src/generated/schemas.js';
import { approvalRule } from '../../../src/graph/approvals.js';
import type { Caller } from '../../../src/keys/caller.js';
import { ANYONE } from '../../../src/keys/caller.js';
import { deadlineOf, mayDecide } from '../../../src/run/pauses/approvals.js';
import { NotApprover, VotesUsedUp } from '../../../src/run/errors.js';
import type { RunFact } from '../../../src/run/events.js';
import { buildForkRequest } from '../../../src/run/fork.js';
import { openPauseOf, pauseOf } from '../../../src/run/state.js';
import type { Story } from '../../support/given.js';
import { begun, decisionFact, given, graphOf, shortText, RUN_ID, scored, wrote } from '../../support/given.js';
import { manualSystem } from '../../support/manual-system.js';
import { plainName, runRequest } from '../../support/open-engine.js';

const { sha256 } = nodeSystem();
const LINE = graphOf('one -> two');
const APPROVE: GateChoice = { action: 'approve', modifiedState: null };
const REJECT: GateChoice = { action: 'reject', modifiedState: null };
const draft = (text: string): GateChoice => ({ action: 'modify', modifiedState: { current_draft: text } });

function key(actor: string, ...scopes: Caller['scopes'] extends ReadonlySet<infer S> ? readonly S[] : never): Caller {
  return { actor, scopes: new Set(['approve', ...scopes]) };
}
const [ann, ben, eve] = [key('ann'), key('ben'), key('eve')];

/** A run that `starter` has started, paused before its first node. */
function pausedBy(approvals: Approvals, { graph = LINE, starter = 'ann' } = {}): Story {
  const council: Graph = { ...graph, approvals };
  return begun({ ...runRequest(RUN_ID, { graph: council, godMode: true }), actor: starter });
}

function decided(story: Story, choice: GateChoice, caller: Caller): Story {
  return story.whenDecided(choice, 'one', caller);
}

describe('The approvers of a pause', () => {
  const refused = (story: Story, caller: Caller): string => {
    expect(mayDecide(story.run, caller)).to.equal(false);
    try {
      decided(story, APPROVE, caller);
    } catch (error) {
      if (error instanceof NotApprover) return error.message;
      throw error;
    }
    throw new Error('It was allowed');
  };
  const allowed = (story: Story, caller: Caller): void => {
    expect(mayDecide(story.run, caller)).to.equal(true);
    expect(decided(story, APPROVE, caller).facts[0]?.type).to.equal('GateDecided');
  };

  it('are named keys and holders of a named scope', () => {
    const story = pausedBy({ by: ['ben', 'scope:audit'] });
    allowed(story, ben);
    allowed(story, key('eve', 'audit'));
    expect(refused(story, eve)).to.include('"eve" is not among its approvers: ben, scope:audit');
    allowed(pausedBy({ by: ['scope:approve'] }), eve);
    expect(mayDecide(story.run, { actor: 'ben', scopes: new Set(['read']) })).to.equal(false);
  });

  it('exclude the starter if the rule says so', () => {
    const story = pausedBy({ not_by_starter: true }, { starter: 'ann' });
    expect(refused(story, ann)).to.include('"ann" has started the run');
    allowed(story, ben);
  });

  it('do not exist in a service without keys if the rule needs names', () => {
    for (const approvals of [{ by: ['ann'] }, { not_by_starter: true }, { quorum: 2 }, { by: ['scope:approve'] }]) {
      expect(refused(pausedBy(approvals), ANYONE)).to.include('the service has no keys');
    }
    for (const approvals of [{}, { quorum: 1 }, { deadline: { after_ms: 5, then: 'reject' as const } }]) {
      allowed(pausedBy(approvals), ANYONE);
    }
  });

  it("follow a node's rule instead of the rule of the council", () => {
    const graph = { ...LINE, nodes: LINE.nodes.map((node) => (node.id === 'two' ? { ...node, approvals: {} } : node)) };
    const first = pausedBy({ by: ['ben'] }, { graph });
    refused(first, eve);
    const second = decided(first, APPROVE, ben).when(wrote('one'));
    allowed(second, eve);
    expect(mayDecide(decided(second, REJECT, eve).run, eve)).to.equal(false);
  });

  it('must also satisfy the rules of nodes that an override leads to', () => {
    const council = graphOf('write -> judge?; judge -rework-> write; judge -approve-> polish');
    const graph = {
      ...council,
      nodes: council.nodes.map((node) => (node.id === 'polish' ? { ...node, approvals: { by: ['ben'] } } : node)),
    };
    const story = begun(runRequest(RUN_ID, { graph, godMode: true }));
    const judged = decided(decided(story, APPROVE, eve).when(wrote('write')), APPROVE, eve).when(scored('judge', 3));
    const pass: GateChoice = { action: 'modify', modifiedState: { critic_score: 9 } };
    expect(() => decided(judged, pass, eve)).to.throw(NotApprover);
    expect(decided(judged, pass, ben).facts.map(shortText)).to.include('NodeStarted polish 3.1');
  });

  it('of several nodes satisfy the strictest combination of their rules', () => {
    const nodes: readonly Approvals[] = [
      { by: ['ann', 'ben'], quorum: 2, deadline: { after_ms: 9, then: 'approve' } },
      { by: ['ben', 'eve', 'scope:audit'], not_by_starter: true, deadline: { after_ms: 50, then: 'reject' } },
      { by: ['scope:approve'], deadline: { after_ms: 50, then: { escalate: ['zoe'] } } },
    ];
    const graph = { ...graphOf('a, b, c'), entry: 'a' };
    const council = {
      ...graph,
      nodes: ['a', 'b', 'c'].map((id, index) => ({
        ...given(LINE).run.plan.node('one'),
        id,
        approvals: nodes[index] ?? {},
      })),
    };
    expect(approvalRule(council, ['a', 'b', 'c'])).to.deep.equal({
      by: ['ben'],
      notByStarter: true,
      quorum: 2,
      deadline: { after_ms: 50, then: 'reject' },
    });
    const approving = (afterMs: number): Approvals => ({ deadline: { after_ms: afterMs, then: 'approve' } });
    const two = { ...council, nodes: council.nodes.map((node, at) => ({ ...node, approvals: approving(at + 1) })) };
    expect(approvalRule(two, ['a', 'b'])?.deadline).to.deep.equal({ after_ms: 2, then: 'approve' });
    const one = { ...two, nodes: two.nodes.map((node) => (node.id === 'b' ? { ...node, approvals: {} } : node)) };
    expect(approvalRule(one, ['a', 'b'])?.deadline).to.equal(null);
  });
});

describe('A quorum', () => {
  const two = (): Story => pausedBy({ quorum: 2 });

  it('is reached when enough approvers agree', () => {
    const voted = decided(two(), APPROVE, ann).then('VoteCast 1 approve by ann');
    expect(voted.run.phase.status).to.equal('paused');
    expect(openPauseOf(voted.run)?.votes).to.deep.include.members([
      { choice: APPROVE, actor: 'ann', comment: null, at: '2026-01-01T00:00:00.000Z' },
    ]);
    decided(voted, APPROVE, ben).then(
      'GateDecided 1 approve',
      'RunClaimed resumed 2 by one',
      'RunResumed 1',
      'NodeStarted one 1.1',
    );
  });

  it('counts each approver once', () => {
    const voted = decided(two(), APPROVE, ann);
    decided(voted, APPROVE, ann).then();
    decided(voted, { action: 'approve', modifiedState: { current_draft: 'sent, not applied' } }, ann).then();
  });

  it('restarts its count with a different choice', () => {
    const changed = decided(decided(two(), APPROVE, ann), draft('Mine'), ben).then('VoteCast 1 modify by ben');
    expect(openPauseOf(changed.run)?.votes.map(({ actor }) => actor)).to.deep.equal(['ben']);
    const again = decided(changed, draft('Other'), ann).then('VoteCast 1 modify by ann');
    decided(again, draft('Mine'), eve).then('VoteCast 1 modify by eve');
    expect(decided(again, draft('Other'), ben).facts[0]?.type).to.equal('GateDecided');
    // A voter who changes the vote restarts the count too.
    expect(openPauseOf(decided(changed, APPROVE, ben).run)?.votes).to.have.lengthOf(1);
  });

  it('counts overrides with the same effect as the same choice', () => {
    const voted = decided(two(), draft('Mine'), ann);
    const shownToo: GateChoice = { action: 'modify', modifiedState: { current_draft: 'Mine', iteration_count: 0 } };
    expect(decided(voted, shownToo, ben).facts[0]?.type).to.equal('GateDecided');
    const unchanged = decided(two(), { action: 'modify', modifiedState: null }, ann);
    expect(decided(unchanged, { action: 'modify', modifiedState: {} }, ben).facts[0]?.type).to.equal('GateDecided');
  });

  it('bounds repeated votes; the completing vote or a rejection is still accepted', () => {
    let story = two();
    for (let count = 0; count < 1_000; count += 1)
      story = decided(story, count % 2 === 0 ? draft('Mine') : APPROVE, ann);
    expect(() => decided(story, draft('Mine'), ann)).to.throw(VotesUsedUp);
    expect(decided(story, APPROVE, ben).facts[0]?.type).to.equal('GateDecided');
    expect(decided(story, REJECT, ben).facts[0]?.type).to.equal('GateDecided');
  });

  it('is not needed to reject', () => {
    decided(decided(two(), APPROVE, ann), REJECT, ben).then(
      'GateDecided 1 reject',
      'RunFailed rejected: Rejected by the user in God Mode',
    );
  });

  it('restarts at the next pause, and in a fork', () => {
    const voted = decided(two(), APPROVE, ann);
    const next = decided(voted, APPROVE, ben).when(wrote('one'));
    expect(openPauseOf(next.run)).to.deep.include({ number: 2, votes: [] });
    const changes = { inputTopic: null, override: null, nodes: [], maxNodeExecutions: null };
    const forked = begun(
      buildForkRequest(voted.run, changes, { runId: RUN_ID, bodyHash: 'b', actor: 'eve', fullName: plainName, sha256 }),
    );
    expect(openPauseOf(forked.run)).to.deep.include({ number: 1, nextNodes: ['one'], votes: [] });
    decided(forked, APPROVE, ben).then('VoteCast 1 approve by ben');
  });

  it('is required of recorded decisions', () => {
    const [story, plain] = [pausedBy({ quorum: 2, by: ['ann', 'ben'] }), pausedBy({})];
    const alone = decisionFact(plain);
    const { data } = alone;
    expect(() => story.recorded(alone)).to.throw('cannot follow');
    const voted = decided(story, APPROVE, ann);
    for (const actor of ['eve', 'ann', null]) {
      const forged: RunFact = { ...alone, data: { ...data, actor } };
      expect(() => voted.recorded(forged), String(actor)).to.throw('cannot follow');
    }
    expect(() => voted.recorded({ ...alone, data: { ...data, by: 'deadline' } })).to.throw('cannot follow');
    expect(() => voted.recorded({ ...alone, data: { ...data, actor: 'ben' } })).not.to.throw();
    const [vote] = voted.facts;
    if (vote?.type !== 'VoteCast') throw new Error('No vote was cast');
    for (const actor of ['eve', 'ann', null]) {
      expect(() => voted.recorded({ ...vote, data: { ...vote.data, actor } }), String(actor)).to.throw('cannot follow');
    }
  });
});

describe('Verifying a record', () => {
  it('finds a decision without its approvers', async () => {
    const story = decided(pausedBy({ quorum: 2, by: ['ann', 'ben'] }), APPROVE, ann);
    for (const [actor, isTrue] of [
      ['eve', false],
      ['ben', true],
    ] as const) {
      const [decision] = decided(story, REJECT, ben).facts;
      if (decision?.type !== 'GateDecided') throw new Error('It was not decided');
      const forged: RunFact = { ...decision, data: { ...decision.data, actor } };
      const after = factsAfter(story.run.head, RUN_ID, [forged]);
      const { recorded } = sealAppend({ system: manualSystem(3), instanceId: 'one' }, after);
      const events = [...story.events, ...recorded];
      const verified = await verifyRecord(RUN_ID, asyncOf(events), { charts: chartCache(), sha256 });
      expect(verified.firstDifference?.seq ?? null).to.equal(isTrue ? null : story.events.length);
    }
  });
});

async function* asyncOf<T>(items: readonly T[]): AsyncIterable<T> {
  yield* items;
}

describe('The deadline of a pause', () => {
  const SOON = '2026-01-01T00:00:59.999Z';
  const DUE = '2026-01-01T00:01:00.000Z';
  const after = (then: NonNullable<Approvals['deadline']>['then']): Story =>
    pausedBy({ by: ['ben'], quorum: 2, deadline: { after_ms: 60_000, then } });

  it('counts from the recorded time of the pause', () => {
    const { run } = after('reject');
    const pause = pauseOf(run);
    expect(pause === null ? null : deadlineOf(run, pause)).to.equal(DUE);
    expect(pause === null ? '' : deadlineOf(run, { ...pause, pausedAt: 'a forged time' })).to.equal(null);
  });

  it('has no effect before it has passed, or if there is none', () => {
    after('reject').whenDue(SOON).then();
    pausedBy({ by: ['ben'] })
      .whenDue('2027-01-01T00:00:00.000Z')
      .then();
  });

  it('rejects with a reason', () => {
    const { facts } = after('reject')
      .whenDue(DUE)
      .then('GateDecided 1 reject', 'RunFailed rejected: Rejected in God Mode: nobody decided within 60000 ms');
    expect(facts[0]?.data).to.include({ by: 'deadline', actor: null, comment: null, keyHash: null });
  });

  it('approves despite other votes', () => {
    const story = after('approve');
    const voted = decided(story, draft('Mine'), ben);
    voted
      .whenDue(DUE)
      .then('GateDecided 1 approve', 'RunClaimed resumed 2 by one', 'RunResumed 1', 'NodeStarted one 1.1');
  });

  it('escalates to other approvers, who decide without a deadline', () => {
    const asked = decided(after({ escalate: ['eve', 'zoe'] }), APPROVE, ben)
      .whenDue(DUE)
      .then('PauseEscalated 1 to eve zoe');
    expect(mayDecide(asked.run, ben)).to.equal(false);
    expect(openPauseOf(asked.run)).to.deep.include({ votes: [], escalatedTo: ['eve', 'zoe'] });
    asked.whenDue('2027-01-01T00:00:00.000Z').then();
    const voted = decided(asked, APPROVE, eve).then('VoteCast 1 approve by eve');
    expect(decided(voted, APPROVE, key('zoe')).facts[0]?.type).to.equal('GateDecided');
  });

  it('is required of a recorded escalation or deadline decision', () => {
    const escalated: RunFact = { type: 'PauseEscalated', data: { gate: 1, to: ['eve'] } };
    expect(() => after({ escalate: ['eve'] }).recorded(escalated)).to.throw('cannot follow');
    expect(() =>
      after({ escalate: ['ann'] })
        .at(DUE)
        .recorded(escalated),
    ).to.throw('cannot follow');
    expect(() =>
      after({ escalate: ['eve'] })
        .at(DUE)
        .recorded(escalated),
    ).not.to.throw();
    const rejected = after('reject').whenDue(DUE).facts;
    expect(() =>
      after('approve')
        .at(DUE)
        .recorded(...rejected),
    ).to.throw('cannot follow');
    expect(() => after('reject').recorded(...rejected)).to.throw('cannot follow');
  });
});
