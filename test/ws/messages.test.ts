import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Ajv2020 } from 'ajv/dist/2020.js';
import type { ChannelMessage } from '../../src/generated/schemas.js';
import { evolve, firstState } from '../../src/run/evolve.js';
import type { RunEvent } from '../../src/run/events.js';
import type { RunState } from '../../src/run/state.js';
import { NOTHING_ANNOUNCED, announce, connectedMessage, unknownRunMessage } from '../../src/ws/messages.js';
import type { Story } from '../support/given.js';
import { broke, decisionFact, given, graphOf, graphWith, RUN_ID, scored, wrote } from '../support/given.js';

const council = graphOf(`
  write -> judge?
  judge? -rework-> write
  judge? -approve-> polish
`);
const fork = graphOf('plan -> left, right');

const schema: unknown = JSON.parse(
  readFileSync(fileURLToPath(new URL('../../../schemas/channel-messages.json', import.meta.url)), 'utf8'),
);
const isChannelMessage = new Ajv2020({ strict: false, ownProperties: true }).compile(schema as object);

/** The messages of a connection that opens at an event of the run: `connected`, then those of each later event. */
function messagesOf(story: Story, from = 0): readonly ChannelMessage[] {
  const messages: ChannelMessage[] = [];
  let announced = NOTHING_ANNOUNCED;
  for (const run of statesOf(story.events).slice(from)) {
    if (messages.length === 0) messages.push(connectedMessage(run.runId, run.phase.status));
    const announcement = announce(run, announced);
    announced = announcement.announced;
    messages.push(...announcement.messages);
  }
  for (const message of messages) expect(isChannelMessage(message), JSON.stringify(message)).to.equal(true);
  return messages;
}

/** The messages of a client that connects after all these events. */
const messagesWhenLate = (story: Story): readonly ChannelMessage[] => messagesOf(story, story.events.length - 1);

function statesOf([first, ...rest]: readonly RunEvent[]): readonly RunState[] {
  if (first?.type !== 'RunRequested') throw new Error('A run begins with RunRequested');
  const states = [firstState(first)];
  for (const event of rest) states.push(evolve(states.at(-1) ?? firstState(first), event));
  return states;
}

/** A message as a short text. */
function summary(message: ChannelMessage): string {
  switch (message.event) {
    case 'connected':
      return `connected ${message.status}`;
    case 'node_active':
      return `node_active ${message.node} ${message.iteration}`;
    case 'run_paused':
      return `run_paused ${message.next_nodes.join(' ')}`;
    case 'run_resumed':
      return `run_resumed ${message.action}`;
    default:
      return message.event;
  }
}

const paused = (): Story => given(council, { godMode: true });
const judged = (): Story =>
  paused().whenApproved().when(wrote('write', 'Draft')).whenApproved().when(scored('judge', 5));

describe('The channel of a run', () => {
  it('sends every change of the active node, then the end', () => {
    const story = given(council)
      .whenAll(wrote('write'), scored('judge', 5), wrote('write'))
      .whenAll(scored('judge', 8), wrote('polish', 'Final'));
    expect(messagesOf(story).map(summary)).to.deep.equal([
      'connected pending',
      'node_active write null',
      'node_active judge 1',
      'node_active write 1',
      'node_active judge 2',
      'node_active polish 2',
      'node_active done 3',
      'run_complete',
    ]);
  });

  it('sends every node of a frontier in order', () => {
    const story = given(fork).whenAll(wrote('plan'), wrote('right'), wrote('left'));
    expect(messagesOf(story).map(summary)).to.deep.equal([
      'connected pending',
      'node_active plan null',
      'node_active left 1',
      'node_active right 1',
      'node_active done 3',
      'run_complete',
    ]);
  });

  it('sends pauses and decisions, and does not announce the waiting node again', () => {
    const story = judged().whenModified({ current_draft: 'Mine' }).when(broke('write'));
    expect(messagesOf(story).map(summary)).to.deep.equal([
      'connected pending',
      'node_active write null',
      'run_paused write',
      'run_resumed approve',
      'node_active judge 1',
      'run_paused judge',
      'run_resumed approve',
      'node_active write 1',
      'run_paused write',
      'run_resumed modify',
      'run_failed',
    ]);
  });

  it('sends the other nodes of a paused frontier', () => {
    const story = given(fork, { godMode: true }).whenApproved().when(wrote('plan')).whenApproved();
    expect(messagesOf(story).map(summary).slice(-4)).to.deep.equal([
      'node_active left 1',
      'run_paused left right',
      'run_resumed approve',
      'node_active right 1',
    ]);
  });

  it('sends the node that a modified route leads to', () => {
    const story = judged().whenModified({ critic_score: 9 });
    expect(messagesOf(story).map(summary).slice(-3)).to.deep.equal([
      'run_paused write',
      'run_resumed modify',
      'node_active polish 1',
    ]);
  });

  it('sends only the failure for a rejection', () => {
    const story = paused().whenDecided({ action: 'reject', modifiedState: null });
    expect(messagesOf(story).map(summary)).to.deep.equal([
      'connected pending',
      'node_active write null',
      'run_paused write',
      'run_failed',
    ]);
  });

  it('sends nothing for claims, retries and takeovers', () => {
    const story = given(council).whenAll(
      broke('write', 5),
      { type: 'ReleaseRun' },
      { type: 'ClaimRun', reason: 'handover' },
    );
    expect(messagesOf(story).map(summary)).to.deep.equal(['connected pending', 'node_active write null']);
  });

  it('does not announce "done" twice if the last node has that name', () => {
    const story = given(graphWith([{ id: 'done' }], [])).when(wrote('done'));
    expect(messagesOf(story).map(summary)).to.deep.equal([
      'connected pending',
      'node_active done null',
      'run_complete',
    ]);
  });

  it('sends only the failure of a run that fails before its first node', () => {
    const story = given(council, { pending: true }).when({ type: 'CancelRun', actor: null });
    expect(messagesOf(story).map(summary)).to.deep.equal(['connected pending', 'run_failed']);
  });

  it('ends exactly with the terminal message', () => {
    const lasts = (story: Story): readonly boolean[] =>
      statesOf(story.events).map((run) => announce(run, NOTHING_ANNOUNCED).isLast);
    expect(lasts(judged())).to.not.include(true);
    for (const story of [given(council).when(broke('write')), given(graphOf('write')).when(wrote('write'))]) {
      expect(lasts(story).lastIndexOf(false)).to.equal(story.events.length - 2);
    }
  });

  it('sends no message if the state has not changed', () => {
    for (const story of [given(council), paused(), paused().whenApproved(), given(council).when(wrote('write'))]) {
      const { announced } = announce(story.run, NOTHING_ANNOUNCED);
      expect(announce(story.run, announced)).to.deep.equal({ messages: [], announced, isLast: false });
    }
  });
});

describe('A client that connects', () => {
  const cases: readonly [state: string, story: () => Story, expected: readonly string[]][] = [
    ['while the run is pending', () => given(council, { pending: true }), ['connected pending']],
    [
      'while a node is under way',
      () => given(council).when(wrote('write')),
      ['connected running', 'node_active judge 1'],
    ],
    ['while several are', () => given(fork).when(wrote('plan')), ['connected running', 'node_active right 1']],
    ['while the run is paused', paused, ['connected paused', 'node_active write null', 'run_paused write']],
    ['at a later pause', judged, ['connected paused', 'node_active write 1', 'run_paused write']],
    ['after a pause', () => judged().whenApproved(), ['connected running', 'node_active write 1']],
    [
      'between decision and resumption',
      () => judged().recorded(decisionFact(judged())),
      ['connected paused', 'node_active write 1'],
    ],
    [
      'after the end',
      () => given(graphOf('write')).when(wrote('write')),
      ['connected completed', 'node_active done 1', 'run_complete'],
    ],
    [
      'after a failure',
      () => given(council).when(broke('write')),
      ['connected failed', 'node_active write null', 'run_failed'],
    ],
    [
      'after a cancel while it was pending',
      () => given(council, { pending: true }).when({ type: 'CancelRun', actor: null }),
      ['connected failed', 'run_failed'],
    ],
  ];
  for (const [state, story, expected] of cases) {
    it(`${state} receives ${expected.join(', ')}`, () => {
      expect(messagesWhenLate(story()).map(summary)).to.deep.equal(expected);
    });
  }

  it('between decision and resumption receives no resumption of a pause that it did not receive', () => {
    const decided = judged().recorded(decisionFact(judged()));
    const { announced } = announce(decided.run, NOTHING_ANNOUNCED);
    expect(announce(judged().whenApproved().run, announced).messages).to.deep.equal([]);
  });
});

describe('The messages', () => {
  it('have exactly their fields', () => {
    const completed = given(graphOf('write -> judge?')).whenAll(wrote('write', 'Text'), scored('judge', 7.5));
    expect(messagesWhenLate(completed)).to.deep.equal([
      { event: 'connected', run_id: RUN_ID, status: 'completed' },
      { event: 'node_active', run_id: RUN_ID, node: 'done', iteration: 1 },
      { event: 'run_complete', run_id: RUN_ID, final_draft: 'Text', critic_score: 7.5, iteration_count: 1 },
    ]);
    expect(messagesWhenLate(judged())).to.deep.equal([
      { event: 'connected', run_id: RUN_ID, status: 'paused' },
      { event: 'node_active', run_id: RUN_ID, node: 'write', iteration: 1 },
      {
        event: 'run_paused',
        run_id: RUN_ID,
        next_nodes: ['write'],
        current_draft: 'Draft',
        critic_score: 5,
        iteration_count: 1,
      },
    ]);
    expect(messagesWhenLate(given(council).when(broke('write'))).at(-1)).to.deep.equal({
      event: 'run_failed',
      run_id: RUN_ID,
      error: 'Node "write": The model is ill',
    });
    expect(messagesOf(paused().whenApproved()).at(-1)).to.deep.equal({
      event: 'run_resumed',
      run_id: RUN_ID,
      action: 'approve',
    });
  });

  it('contain null before the first draft and score', () => {
    const [, , pause] = messagesWhenLate(paused());
    expect(pause).to.include({ current_draft: null, critic_score: null, iteration_count: null });
    const [, , end] = messagesWhenLate(given(graphOf('judge?')).when(scored('judge', 0)));
    expect(end).to.include({ final_draft: null, critic_score: 0, iteration_count: null });
  });

  it('contain the joined draft at a pause before a join', () => {
    const graph = graphOf(`
      plan -> left, judge?
      left, judge? -> meet
    `);
    const frontier = given(graph, { godMode: true }).whenApproved().when(wrote('plan')).whenApproved();
    const story = frontier.whenAll(wrote('left', 'L'), scored('judge', 3));
    expect(messagesOf(story).at(-1)).to.include({ current_draft: '## Left\nL', critic_score: 3, iteration_count: 2 });
  });

  it('name an unknown run', () => {
    const message = unknownRunMessage(RUN_ID);
    expect(message).to.deep.equal({ event: 'error', message: `Run ${RUN_ID} not found` });
    expect(isChannelMessage(message)).to.equal(true);
  });

  it('say that a run has paused for its budget', () => {
    const budget = { tokens: 50, usd: null, onExceeded: 'pause' as const };
    const paused = messagesOf(given(council, { budget })).find(({ event }) => event === 'run_paused');
    expect(paused).to.deep.include({ next_nodes: ['write'], pause_reason: 'budget' });
    const inGodMode = messagesOf(given(council, { godMode: true })).find(({ event }) => event === 'run_paused');
    expect(inGodMode).to.not.have.property('pause_reason');
  });
});
