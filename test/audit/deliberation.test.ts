import { expect } from 'chai';
import { deliberationOf } from '../../src/audit/deliberation.js';
import { genealogyOf } from '../../src/audit/genealogy.js';
import { canonical } from '../../src/eventsourcing/canonical-json.js';
import type { DeliberationRecord, Genealogy, GraphNode, NodeOutput } from '../../src/generated/schemas.js';
import type { RunEvent } from '../../src/run/events.js';
import type { RunState } from '../../src/run/state.js';
import { nodeSystem } from '../../src/system/system.js';
import type { Story, When } from '../support/given.js';
import { attemptOf, completed, failed, given, graphWith, RUN_ID, wrote } from '../support/given.js';
import { randomStory } from '../support/random-history.js';
import { schemaCheck } from '../support/schema-check.js';

const { sha256 } = nodeSystem();
const isDeliberation = schemaCheck('deliberation.json');
const isGenealogy = schemaCheck('genealogy.json');

async function* each(events: readonly RunEvent[]) {
  yield* events;
}

async function deliberation(events: readonly RunEvent[]): Promise<DeliberationRecord> {
  const found = await deliberationOf(RUN_ID, (_, fold) => fold(each(events)));
  if (found === null || !isDeliberation(found)) throw new Error(JSON.stringify(isDeliberation.errors));
  return found;
}

async function genealogy({ events }: Story): Promise<Genealogy> {
  const found = await genealogyOf(RUN_ID, each(events), { sha256, canonical });
  if (found === null || !isGenealogy(found)) throw new Error(JSON.stringify(isGenealogy.errors));
  return found;
}

const members = (...ids: readonly string[]) => ids.map((id) => ({ id, label: `The ${id}` }));
const edge = (source: string, target: string, condition: string | null = null) => {
  return { id: `${source}->${target}`, source, target, condition };
};
const PANEL = { id: 'panel', role: 'panel', members: members('a', 'b', 'c'), graceMs: 0 } as const;
const JURY = { id: 'jury', role: 'critic', members: members('x', 'y'), graceMs: 0, aggregate: 'mean' } as const;

/** What a member gives, or why its attempts fail. */
const by =
  (node: string, member: string, given: NodeOutput | null): When =>
  (run: RunState) => {
    const step = run.progress.frontier.find((at) => at.node === node && at.seat?.member === member);
    if (step === undefined) throw new Error(`"${member}" of "${node}" is not at work`);
    return given === null ? failed(step, null) : completed(step, given);
  };
const answer = (node: string, member: string): When => by(node, member, { answer: `${member} of ${node}` });
const answersOf = ({ answers }: DeliberationRecord) =>
  answers.map(({ node, member, status }) => `${node} ${member} ${status}`);

describe('The deliberation of a run', () => {
  it('has so far what is recorded: no member at work, and no score of a jury that is open', async () => {
    const start = given(graphWith([JURY, PANEL], [edge('jury', 'panel')]));
    expect((await deliberation(start.events)).juries).to.deep.equal([]);
    const scored = start.when(by('jury', 'y', { score: 7, feedback: 'Good' }));
    expect((await deliberation(scored.events)).juries).to.deep.equal([
      {
        step: 1,
        node: 'jury',
        aggregate: 'mean',
        score: null,
        agreement: null,
        scores: [{ member: 'y', model: 'model-1', score: 7, feedback: 'Good' }],
      },
    ]);
    const failing = scored.whenAll(by('jury', 'x', { score: 8, feedback: '' }), answer('panel', 'c'));
    const { answers, juries } = await deliberation(failing.events);
    expect(answers.map(({ member }) => member)).to.deep.equal(['c']);
    expect(juries[0]).to.deep.include({ score: 7.5 });
  });

  for (const [how, end] of [
    ['is cancelled', { type: 'CancelRun', actor: null }],
    ['fails at another node', (run: RunState) => failed(attemptOf(run, 'side'), null)],
  ] as const) {
    it(`has each member of an open panel that had not answered as discarded once the run ${how}`, async () => {
      const nodes = [{ id: 'plan' }, PANEL, { id: 'side' }];
      const start = given(graphWith(nodes, [edge('plan', 'panel'), edge('plan', 'side')])).whenAll(wrote('plan'));
      expect(answersOf(await deliberation(start.when(end).events))).to.deep.equal(
        ['a', 'b', 'c'].map((id) => `panel ${id} discarded`),
      );
      const answered = start.whenAll(answer('panel', 'b'), by('panel', 'c', null));
      const quorum = start.when(answer('panel', 'b'));
      expect(answersOf(await deliberation(quorum.events))).to.deep.equal(['panel b answered']);
      expect(answersOf(await deliberation(quorum.when(end).events))).to.deep.equal([
        ...['panel a discarded', 'panel b answered', 'panel c discarded'],
      ]);
      // The panel fails the run itself.
      expect(answersOf(await deliberation(answered.events))).to.deep.equal([
        ...['panel a discarded', 'panel b answered', 'panel c failed'],
      ]);
    });
  }

  it('has several panels, and executions of one in a loop, in the order of the record', async () => {
    const other = { ...PANEL, id: 'other', quorum: 1, members: members('d', 'e') };
    const nodes = [{ id: 'plan' }, PANEL, other, { id: 'meet' }, { id: 'judge', role: 'critic' as const }];
    const edges = [
      ...[edge('plan', 'panel'), edge('plan', 'other'), edge('panel', 'meet'), edge('other', 'meet')],
      ...[edge('meet', 'judge'), edge('judge', 'plan', 'rework')],
    ];
    const round = (story: Story): Story =>
      story
        .whenAll(wrote('plan'), answer('other', 'e'), answer('panel', 'c'), answer('panel', 'b'), answer('panel', 'a'))
        .whenAll(wrote('meet'));
    const first = round(given(graphWith(nodes, edges)));
    const rework = first.when((run) => {
      const at = run.progress.frontier.find(({ node }) => node === 'judge');
      if (at === undefined) throw new Error('The judge is not at work');
      return completed(at, { score: 2, feedback: 'Again' });
    });
    const panels = [
      ...['panel a answered', 'panel b answered', 'panel c answered', 'other d discarded', 'other e answered'],
    ];
    expect(answersOf(await deliberation(first.events))).to.deep.equal(panels);
    const twice = await deliberation(round(rework).events);
    expect(answersOf(twice)).to.deep.equal([...panels, ...panels]);
    expect(twice.answers.map(({ step }) => step)).to.deep.equal([2, 2, 2, 5, 5, 10, 10, 10, 13, 13]);
  });

  it('of any history fits its schema after each event, and holds each recorded answer', async () => {
    let answers = 0;
    for (let seed = 20260301; seed < 20260331; seed += 1) {
      const { events } = randomStory(seed);
      for (const { seq } of events) {
        const found = await deliberation(events.slice(0, seq + 1));
        const outputs = events.slice(0, seq + 1).flatMap(({ type, data }) => (type === 'NodeCompleted' ? [data] : []));
        const given = {
          answer: outputs.filter(({ output }) => 'answer' in output).length,
          ranking: outputs.filter(({ output }) => 'ranking' in output).length,
          score: outputs.filter(({ output, member }) => 'score' in output && member !== undefined).length,
          analysis: outputs.filter(({ output }) => 'analysis' in output).length,
        };
        expect(
          found.answers.filter(({ status }) => status === 'answered'),
          `seed ${seed}`,
        ).to.have.length(given.answer);
        expect(found.rankings).to.have.length(given.ranking);
        expect(found.juries.flatMap(({ scores }) => scores)).to.have.length(given.score);
        expect(found.analyses).to.have.length(given.analysis);
        const numbers = new Set(outputs.map(({ step, panelStep = step }) => panelStep));
        const entries = [...found.rankings, ...found.results, ...found.analyses, ...found.juries];
        expect([...numbers]).to.include.members(entries.map(({ step }) => step));
        answers += given.answer;
      }
    }
    expect(answers).to.be.greaterThan(100);
  });
});

describe('The genealogy of a panel', () => {
  const lineage = ({ drafts }: Genealogy): readonly string[] =>
    drafts.map(({ id, kind, node, member = '', parents }) => {
      return `${id} ${kind} ${node} ${member} < ${[...parents.drafts, ...parents.feedback].join(' ')}`;
    });
  const rank: Partial<GraphNode> & { id: string } = { id: 'rank', role: 'rank', members: members('r'), keep: 1 };

  it('joins the answers of its members, of which a rank keeps the best', async () => {
    const nodes = [{ id: 'plan' }, PANEL, rank, { id: 'write' }];
    const edges = [edge('plan', 'panel'), edge('panel', 'rank'), edge('rank', 'write')];
    const story = given(graphWith(nodes, edges))
      .whenAll(wrote('plan'), answer('panel', 'b'), answer('panel', 'a'), answer('panel', 'c'))
      .when((run) => {
        const [at] = run.progress.frontier;
        if (at === undefined) throw new Error('No reviewer is at work');
        const best = 'ABC'.charAt(at.orderShown.indexOf('b'));
        return completed(at, { ranking: [best, ...['A', 'B', 'C'].filter((each) => each !== best)], comment: '' });
      })
      .when(wrote('write', 'The end'));
    const found = await genealogy(story);
    expect(lineage(found)).to.deep.equal([
      'd4 written plan  < ',
      'd8 answer panel b < d4',
      'd9 answer panel a < d4',
      'd10 answer panel c < d4',
      'd11 joined panel  < d9 d8 d10',
      'd14 joined rank  < d8',
      'd16 written write  < d14',
    ]);
    const text = '## The b\nb of panel';
    expect(found.drafts.find(({ id }) => id === 'd14')).to.deep.include({ step: 5, hash: sha256(text), iteration: 2 });
    expect(found.outcome?.final_draft).to.equal('d16');
  });

  it('shows the scores of a jury and of its members, and only its own at the draft', async () => {
    const nodes = [{ id: 'write' }, JURY, { id: 'end' }];
    const edges = [edge('write', 'jury'), edge('jury', 'end', 'approve'), edge('jury', 'write', 'rework')];
    const story = given(graphWith(nodes, edges)).whenAll(
      wrote('write'),
      by('jury', 'x', { score: 5, feedback: 'Shorter' }),
      by('jury', 'y', { score: 6, feedback: 'Longer' }),
      wrote('write'),
    );
    const { scores, drafts, feedback } = await genealogy(story);
    expect(
      scores.map(({ member, score, verdict, drafts: on, feedback: id }) => [member, score, verdict, on, id]),
    ).to.deep.equal([
      ['x', 5, null, ['d4'], null],
      ['y', 6, null, ['d4'], null],
      [undefined, 5.5, 'rework', ['d4'], 'f9'],
    ]);
    expect(drafts[0]?.scores).to.deep.equal([{ seq: 9, node: 'jury', score: 5.5 }]);
    expect(feedback.map(({ id, node, first_line: line }) => [id, node, line])).to.deep.equal([
      ['f9', 'jury', '## The x'],
    ]);
    expect(drafts[1]?.parents).to.deep.equal({ drafts: ['d4'], feedback: ['f9'] });
  });

  it('names the joined draft of each node at a pause before a panel and another node', async () => {
    const nodes = [{ id: 'plan' }, { id: 'left' }, { id: 'right' }, PANEL, { id: 'sum' }];
    const edges = [
      ...[edge('plan', 'left'), edge('plan', 'right'), edge('left', 'panel'), edge('right', 'panel')],
      ...[edge('left', 'sum'), edge('right', 'sum')],
    ];
    const paused = given(graphWith(nodes, edges), { godMode: true })
      .whenApproved()
      .when(wrote('plan'))
      .whenApproved()
      .whenAll(wrote('left'), wrote('right'));
    const joined = async (story: Story): Promise<readonly (string | number | null)[][]> =>
      (await genealogy(story)).drafts.flatMap(({ kind, node, step }) => (kind === 'joined' ? [[node, step]] : []));
    const before = await joined(paused);
    expect(before).to.have.deep.members([
      ['panel', 4],
      ['sum', 7],
    ]);
    expect(await joined(paused.whenApproved())).to.deep.equal(before);
  });
});
