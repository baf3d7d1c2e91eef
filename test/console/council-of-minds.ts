/** The record of a run with every kind of deliberation, for tests of the console. */
import type { GraphNode, NodeOutput } from '../../src/generated/schemas.js';
import type { FrontierNode, RunState } from '../../src/run/state.js';
import { buildForkRequest } from '../../src/run/fork.js';
import { letterAt } from '../../src/council/deliberation/anonymity.js';
import type { Story, When } from '../support/given.js';
import { recordOf } from '../support/console-records.js';
import { begun, completed, failed, given, graphWith, wrote } from '../support/given.js';
import { manualSystem } from '../support/manual-system.js';
import { plainName } from '../support/open-engine.js';

const START_MS = Date.parse('2026-01-01T00:00:00.000Z');

/** A time of the story, in seconds after its start. */
export const at = (seconds: number): string => new Date(START_MS + seconds * 1_000).toISOString();

const edge = (source: string, target: string, condition: string | null = null) => {
  return { id: `${source}->${target}`, source, target, condition };
};

type Node = Partial<GraphNode> & { readonly id: string };

const PANEL: Node = {
  id: 'panel',
  role: 'panel',
  countsIteration: true,
  quorum: 3,
  graceMs: 30_000,
  maxAttempts: 2,
  members: [
    { id: 'north', label: 'North', model: 'sea/large' },
    { id: 'east', label: 'East', model: 'sea/small' },
    { id: 'south', label: 'South', model: 'land/large' },
    { id: 'west', label: 'West', model: 'land/small' },
    { id: 'moon', label: 'Moon', model: 'sky/one' },
  ],
};
const RANK: Node = { id: 'review', label: 'Peer review', role: 'rank', countsIteration: false, keep: 2 };
const JUDGE: Node = { id: 'judge', role: 'judge', countsIteration: false };
const JURY: Node = {
  id: 'jury',
  role: 'critic',
  countsIteration: false,
  graceMs: 0,
  aggregate: 'median',
  members: ['a', 'b', 'c'].map((id) => ({ id, label: `Juror ${id.toUpperCase()}` })),
};

const COUNCIL = graphWith(
  [PANEL, RANK, JUDGE, { id: 'chair', label: 'Chair' }, JURY, { id: 'editor', label: 'Editor' }],
  [
    edge('panel', 'review'),
    edge('review', 'judge'),
    edge('judge', 'chair'),
    edge('chair', 'jury'),
    edge('jury', 'chair', 'rework'),
    edge('jury', 'editor', 'approve'),
  ],
);

/** The step under way of a member. */
export function stepOf(run: RunState, member: string): FrontierNode {
  const found = run.progress.frontier.find(({ seat }) => seat?.member === member);
  if (found === undefined) throw new Error(`No member "${member}" is at work`);
  return found;
}

export const gave =
  (member: string, output: NodeOutput): When =>
  (run) =>
    completed(stepOf(run, member), output);
export const answered = (member: string, answer = `The answer of ${member}`): When => gave(member, { answer });
export const broke =
  (member: string, retryInMs: number | null = null): When =>
  (run) =>
    failed(stepOf(run, member), retryInMs);

/** A reviewer puts these members first, in this order, and the others as they were shown. Its comment names the first. */
export const ranked =
  (reviewer: string, best: readonly string[], comment: string): When =>
  (run) => {
    const { orderShown, ...step } = stepOf(run, reviewer);
    const order = [...best.filter((id) => orderShown.includes(id)), ...orderShown.filter((id) => !best.includes(id))];
    const ranking = order.map((id) => letterAt(orderShown.indexOf(id)));
    return completed(step, { ranking, comment: comment.replace('the first', `Response ${ranking[0]}`) });
  };

const judged: When = (run) => {
  const judge = run.progress.frontier.find(({ node }) => node === 'judge');
  if (judge === undefined) throw new Error('The judge is not at work');
  const [first = '', second = ''] = judge.orderShown.map((_, index) => letterAt(index));
  return completed(judge, {
    analysis: {
      consensus: ['The sea is salty.', `Responses ${first} and ${second} name its colour, Response Z does not.`],
      contradictions: [
        {
          topic: 'How deep it is',
          stances: [
            { response: first, stance: 'Eleven kilometres' },
            { response: second, stance: 'Nobody has measured it' },
          ],
        },
      ],
      partial_coverage: [{ responses: [first], point: 'The tides' }],
      unique_insights: [{ response: second, insight: 'Fish do not know that it is wet.' }],
      blind_spots: [],
    },
  });
};

const scores = (...given: readonly number[]): readonly When[] =>
  ['a', 'b', 'c'].map((member, index) =>
    gave(member, { score: given[index] ?? 0, feedback: `Juror ${member} wants **more** detail.` }),
  );

/**
 * The panel alone: three of five have answered, Moon has failed, and West is still at work.
 *
 * @param quorum default: 3
 */
export function openPanelStory(quorum = 3): Story {
  const nodes = COUNCIL.nodes.map((node) => (node.role === 'panel' ? { ...node, quorum } : node));
  return given({ ...COUNCIL, nodes }, { topic: 'The sea' })
    .when(answered('north', '# The sea\n\nIt is **deep**.'), 'one', at(3))
    .when(broke('moon', 500), 'one', at(4))
    .when(answered('east'), 'one', at(5))
    .when(broke('moon'), 'one', at(6))
    .when(answered('south'), 'one', at(7));
}

/** A fork of a story at an event, whose first instance has claimed it. */
export function forkedAt({ events }: Story, seq: number): Story {
  const state = recordOf(events).stateAt(seq);
  if (state === null) throw new Error('The story has no events');
  const { uuid, sha256 } = manualSystem(9);
  const changes = { inputTopic: null, override: null, nodes: [], maxNodeExecutions: null };
  return begun(
    buildForkRequest(state, changes, {
      runId: uuid(),
      bodyHash: sha256('fork'),
      actor: null,
      fullName: plainName,
      sha256,
    }),
  );
}

/** The whole run: West comes too late, three review, a judge compares, and the jury is content in its second round. */
export function councilOfMinds(): Story {
  let story = openPanelStory().when({ type: 'ClosePanels', until: at(37) }, 'one', at(37));
  let seconds = 40;
  const next = (...commands: readonly When[]): void => {
    for (const command of commands) story = story.when(command, 'one', at((seconds += 2)));
  };
  next(
    ranked('north', ['south', 'east'], 'South gives *reasons*.'),
    ranked('east', ['south', 'north'], 'Clear and short.'),
    ranked('south', ['east', 'north'], ''),
    ranked('west', ['south', 'north', 'east'], 'I like the first best.'),
    broke('moon'),
  );
  next(judged, wrote('chair', 'The sea, first draft'), ...scores(5, 7, 6));
  next(wrote('chair', 'The sea, second draft'), ...scores(9, 8, 9));
  next(wrote('editor', 'The sea, at last'));
  return story;
}
