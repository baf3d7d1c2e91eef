import { expect } from 'chai';
import { nodeSystem } from '../../src/system/system.js';
import { genealogyOf } from '../../src/audit/genealogy.js';
import type { Genealogy } from '../../src/generated/schemas.js';
import { schemaCheck } from '../support/schema-check.js';
import { canonical } from '../../src/eventsourcing/canonical-json.js';
import type { ExportedEvent } from '../../src/eventsourcing/hash-chain.js';
import { assertRunEvent } from '../../src/run/stream.js';
import { given, graphOf, playOut, scored, wrote } from '../support/given.js';
import { eventIn, readGolden } from '../support/golden.js';
import { goldenHistories } from '../support/golden-histories.js';
import { failureOf } from '../../src/run/state.js';

const { sha256 } = nodeSystem();
const isGenealogy = schemaCheck('genealogy.json');

/** The genealogy of events, which must fit its schema. */
async function genealogy(events: readonly ExportedEvent[]): Promise<Genealogy> {
  const [first] = events;
  const runId = first !== undefined && 'runId' in first.data ? String(first.data.runId) : '';
  const result = await genealogyOf(runId, runEvents(events), { sha256, canonical });
  if (result === null || !isGenealogy(result)) throw new Error(JSON.stringify(isGenealogy.errors));
  return result;
}

async function* runEvents(events: readonly ExportedEvent[]) {
  for (const event of events) {
    assertRunEvent(event);
    yield event;
  }
}

const golden = (name: string): Promise<Genealogy> => {
  const history = readGolden().find((each) => each.name === `v1-${name}`);
  return genealogy((history?.lines ?? []).map(eventIn));
};

/** A short text for each draft: its kind, its author and its sources. */
const lineage = ({ drafts }: Genealogy): Record<string, string> =>
  Object.fromEntries(
    drafts.map(({ id, kind, node, parents }) => {
      const from = [...parents.drafts, ...parents.feedback].join(' ');
      return [id, `${kind} ${node ?? '-'} < ${from}`];
    }),
  );
const scoresIn = ({ scores }: Genealogy): readonly string[] =>
  scores.map(({ seq, node, score, drafts }) => `${seq} ${node ?? '-'} ${score} on ${drafts.join(' ')}`);

describe('Genealogy', () => {
  it('fits its schema for every golden history', async () => {
    for (const { lines } of readGolden()) await genealogy(lines.map(eventIn));
    for (const history of goldenHistories().values()) await genealogy(history);
  });

  it('shows which draft and feedback led to which draft in the fixed graph, and all scores', async () => {
    const result = await golden('fixed-graph');
    expect(lineage(result)).to.deep.equal({
      d4: 'written master_agent < ',
      d8: 'written master_agent < d4 f6',
      d12: 'written writer_agent < d8 f6 f10',
    });
    expect(scoresIn(result)).to.deep.equal(['6 critic_agent 6.5 on d4', '10 critic_agent 8 on d8']);
    const [first, second, last] = result.drafts;
    expect(first).to.deep.include({ hash: sha256('First draft'), characters: 11, first_line: 'First draft', step: 1 });
    expect(first?.scores).to.deep.equal([{ seq: 6, node: 'critic_agent', score: 6.5 }]);
    expect([first, second, last].map((each) => each?.iteration)).to.deep.equal([1, 2, 2]);
    expect(result.feedback[0]).to.deep.include({
      id: 'f6',
      node: 'critic_agent',
      draft: 'd4',
      first_line: 'More depth',
    });
    expect(result.outcome).to.deep.include({ seq: 13, status: 'completed', final_draft: 'd12', critic_score: 8 });
    expect(result).to.deep.include({ parent: null, decisions: [], failures: [], seq: 13 });
  });

  it('shows joined drafts of branches, drafts of loops, and failed attempts', async () => {
    const result = await golden('branches');
    expect(lineage(result)).to.deep.equal({
      d4: 'written plan < ',
      d7: 'written right < d4',
      d10: 'written left < d4',
      d13: 'joined meet < d10 d7',
      d14: 'written meet < d13 f12',
      d18: 'written plan < d14 f12 f16',
      d21: 'written right < d18 f12 f16',
      d24: 'written left < d18 f12 f16',
      d27: 'joined meet < d24 d21',
      d28: 'written meet < d27 f12 f16 f26',
      d32: 'written polish < d28 f12 f16 f26 f30',
    });
    expect(scoresIn(result)).to.deep.equal([
      '12 check 4 on d10',
      '16 judge 4 on d14',
      '26 check 9 on d24',
      '30 judge 9 on d28',
    ]);
    expect(result.failures.map(({ seq, node, attempt }) => `${seq} ${node} ${attempt}`)).to.deep.equal([
      '8 left 1',
      '22 left 1',
    ]);
    expect(result.drafts.find(({ id }) => id === 'd10')).to.include({ attempt: 2 });
  });

  it('shows the votes for a decision, and whether a deadline decided', async () => {
    const result = await golden('god-quorum');
    const decisions = result.decisions.map(({ action, actor, votes }) => [
      action,
      actor,
      votes.map((vote) => vote.actor),
    ]);
    expect(decisions).to.deep.equal([
      ['modify', 'ann', ['ben']],
      ['reject', 'eve', []],
    ]);
    const late = (await golden('god-deadline')).decisions.map(({ actor, by_deadline: isLate }) => [actor, isLate]);
    expect(late).to.deep.equal([
      [null, true],
      ['eve', false],
    ]);
  });

  it('shows the state at a pause and the changes of a human, with drafts and feedback', async () => {
    const result = await golden('god-modify');
    expect(lineage(result)).to.deep.equal({
      d9: 'written write < ',
      d12: 'human - < d9',
      d23: 'written polish < d12 f19',
    });
    expect(scoresIn(result)).to.deep.equal(['16 judge 3 on d12', '19 - 8 on d12']);
    const [first, second, third] = result.decisions;
    expect(first).to.deep.include({ seq: 5, answers: 3, action: 'modify', changes: [] });
    expect(second?.shown).to.deep.include({ draft: 'd9', draft_hash: sha256('by write'), next_nodes: ['judge'] });
    expect(second?.changes).to.deep.equal([
      { field: 'input_topic', from: 'Trees', to: 'Old trees' },
      { field: 'current_draft', from: 'd9', to: 'd12' },
    ]);
    expect(third?.shown).to.deep.include({ critic_score: 3, route_decision: 'rework', next_nodes: ['write'] });
    expect(third?.changes).to.deep.equal([
      { field: 'critic_score', from: 3, to: 8 },
      { field: 'iteration_count', from: 1, to: 4 },
      { field: 'feedback_history', from: ['f16'], to: ['f19'] },
    ]);
    expect(third).to.deep.include({ next_nodes: ['polish'], route_reason: 'condition approve' });
  });

  it('shows which drafts an override of branches replaces, and omits unchanged ones', async () => {
    const result = await golden('god-modify-branches');
    expect(lineage(result)).to.deep.equal({
      d9: 'written plan < ',
      d12: 'human - < d9',
      'd12.1': 'human - < d9',
      d18: 'written left < d12',
      d19: 'written right < d12.1',
      d20: 'written aside < d12.1',
      d23: 'human - < d19',
      d27: 'written deep < d23 f23',
      d28: 'joined meet < d18 d27',
      d30: 'human - < d28',
      d34: 'written meet < d30 f23',
      d35: 'joined - < d20 d34',
    });
    expect(result.decisions.map(({ changes }) => changes)).to.deep.equal([
      [],
      [
        { field: 'current_draft', from: 'd9', to: 'd12.1' },
        { field: 'branches', from: ['d9'], to: ['d12'] },
      ],
      [
        { field: 'current_draft', from: 'd19', to: 'd23' },
        { field: 'critic_score', from: null, to: 6 },
        { field: 'feedback_history', from: [], to: ['f23'] },
      ],
      [{ field: 'current_draft', from: 'd28', to: 'd30' }],
    ]);
  });

  it('shows for an override only the branches that it gave another draft', async () => {
    const branches = [{ node: 'left', current_draft: 'Plan' }];
    const { events } = given(graphOf('plan -> left, right'), { godMode: true })
      .whenApproved()
      .when(wrote('plan', 'Plan'))
      .whenModified({ branches, current_draft: 'For the right' });
    const { decisions, drafts } = await genealogy(events);
    expect(decisions[1]?.changes.map(({ field }) => field)).to.deep.equal(['current_draft']);
    expect(drafts.filter(({ kind }) => kind === 'human').map((each) => each.first_line)).to.deep.equal([
      'For the right',
    ]);
  });

  it('shows only the fields and hash of an override that was not applied', async () => {
    const { decisions, drafts } = await golden('god-approve');
    const sent = { current_draft: 'sent, not applied' };
    const hash = sha256(canonical(sent));
    expect(decisions.map(({ changes }) => changes)).to.deep.equal([[], [], []]);
    expect(decisions.map(({ unapplied }) => unapplied)).to.deep.equal([
      null,
      null,
      { fields: ['current_draft'], hash, characters: 37 },
    ]);
    expect(drafts.map(({ kind }) => kind)).to.deep.equal(['written', 'written']);
  });

  it('shows how rejected, cancelled and failed runs end, and that no draft is final', async () => {
    const ends = await Promise.all(
      ['god-reject', 'cancel', 'failure-after-retries', 'failure-without-route'].map(golden),
    );
    expect(ends.map(({ outcome }) => `${outcome?.status} ${outcome?.kind} ${outcome?.final_draft}`)).to.deep.equal([
      'failed rejected null',
      'failed cancelled null',
      'failed node_failed null',
      'failed no_route null',
    ]);
    expect(ends.map(({ drafts }) => drafts.length)).to.deep.equal([1, 2, 0, 1]);
    expect(ends[0]?.decisions.at(-1)).to.deep.include({ action: 'reject', changes: [], next_nodes: [] });
    expect(ends[2]?.failures.map(({ attempt }) => attempt)).to.deep.equal([1, 2, 3]);
  });

  it('shows the chunks in the prompt of the attempt that wrote a draft', async () => {
    const { drafts } = await golden('tool-calls');
    const passages = [{ url: 'http://127.0.0.1/trees', title: 'Trees', score: null }];
    expect(drafts[0]?.tools).to.deep.equal([{ seq: 7, tool: 'pdf_reader', error: null, passages }]);
    expect(drafts[0]).to.include({ id: 'd8', attempt: 2 });
    expect(drafts[1]?.tools).to.deep.equal([]);
  });

  it('shows the parent of a fork, what it inherited and what its request changed', async () => {
    const now = await golden('fork-at-a-pause');
    expect(lineage(now)).to.deep.equal({ d0: 'human - < ', d16: 'written polish < d0 f9' });
    const parent = await golden('god-modify');
    expect(now.parent).to.deep.include({ run_id: parent.run_id, at: 10, reused_results: 1 });
    const nodes = [{ id: 'judge', fields: ['systemPrompt'] }];
    expect(now.parent?.changes).to.deep.equal({ input_topic: true, state: ['current_draft'], nodes });
    expect(now.decisions[0]?.shown).to.deep.include({ draft: 'd0', draft_hash: sha256('Another draft') });
    expect(scoresIn(now)).to.deep.equal(['9 judge 9 on d0']);
  });

  it('shows the drafts that a fork amid branches inherits, under the hashes of its parent', async () => {
    const [fork, parent] = [await golden('fork-of-branches'), await golden('branches')];
    const inherited = fork.drafts.filter(({ kind }) => kind === 'inherited');
    expect(inherited.map(({ node }) => node)).to.have.members(['plan', 'right']);
    const known = new Map(parent.drafts.map(({ hash, id }) => [hash, id]));
    expect(inherited.map(({ hash }) => known.get(hash))).to.not.include(undefined);
    expect(fork.parent).to.include({ reused_results: 2 });
    expect(lineage(fork)).to.deep.include({
      d4: `written left < ${inherited.find(({ node }) => node === 'plan')?.id} f0`,
    });
    expect(fork.feedback[0]).to.include({ id: 'f0', count: 1, first_line: 'Be brief' });
  });

  it('joins branches that end separately, after a human set one draft for all', async () => {
    const story = given(graphOf('plan -> left, right'), { godMode: true })
      .whenApproved()
      .when(wrote('plan'))
      .whenModified({ current_draft: 'Mine' })
      .whenAll(wrote('left'), wrote('right'));
    const result = await genealogy(story.events);
    expect(lineage(result)).to.deep.equal({
      d9: 'written plan < ',
      d12: 'human - < d9',
      d17: 'written left < d12',
      d18: 'written right < d12',
      d19: 'joined - < d17 d18',
    });
    expect(result.outcome).to.include({ final_draft: 'd19' });
  });

  it('shows a join at a pause once, and the draft by which a human replaced it', async () => {
    const story = given(graphOf('plan -> left, right; left, right -> meet'), { godMode: true })
      .whenApproved()
      .when(wrote('plan'))
      .whenApproved()
      .whenAll(wrote('left'), wrote('right'));
    const pause = story.run.head.seq - 1;
    const approved = await genealogy(story.whenApproved().when(wrote('meet')).events);
    const joined = approved.drafts.filter(({ kind }) => kind === 'joined');
    expect(joined.map(({ id }) => id)).to.deep.equal([`d${pause}`]);
    expect(approved.drafts.at(-1)?.parents.drafts).to.deep.equal([`d${pause}`]);
    const mine = { action: 'modify', modifiedState: { current_draft: 'Mine' } } as const;
    const modified = await genealogy(story.whenDecided(mine).when(wrote('meet')).events);
    expect(lineage(modified)).to.deep.include({
      [`d${pause + 2}`]: `human - < d${pause}`,
      [modified.drafts.at(-1)?.id ?? '']: `written meet < d${pause + 2}`,
    });
  });

  it('stays small for large drafts and long runs', async () => {
    const graph = graphOf('write -> judge?; judge -> write');
    const large = 'ä'.repeat(20_000);
    const story = playOut(given(graph), (node) => (node === 'judge' ? scored('judge', 2) : wrote('write', large)));
    expect(failureOf(story.run)?.kind).to.equal('execution_limit');
    const result = await genealogy(story.events);
    expect(result.drafts).to.have.lengthOf(25);
    expect(result.drafts[0]).to.include({ characters: 20_000, first_line: 'ä'.repeat(120) });
    expect(JSON.stringify(result).length).to.be.below(40_000);
  });
});
