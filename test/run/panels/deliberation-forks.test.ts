import { expect } from 'chai';
import type { ModelRequest } from '../../../src/models/port.js';
import type { RunEvent } from '../../../src/run/events.js';
import { buildForkRequest } from '../../../src/run/fork.js';
import { openPanels } from '../../../src/run/panels/panels.js';
import { isFinished } from '../../../src/run/state.js';
import type { System } from '../../../src/system/system.js';
import { nodeSystem } from '../../../src/system/system.js';
import { graphWith } from '../../support/given.js';
import type { TestEngine } from '../../support/open-engine.js';
import { openTestEngine, runRequest } from '../../support/open-engine.js';
import { checkRecord, factsOf } from '../../support/record-of.js';
import { runWhen } from '../../support/run-when.js';
import type { Reply, ScriptedModel } from '../../support/scripted-model.js';
import { scriptedModel } from '../../support/scripted-model.js';
import { tempDir } from '../../support/temp-dir.js';
import { untilTrue } from '../../support/until-true.js';

const { sha256, uuid } = nodeSystem();
const NODE = { timeoutMs: 600_000, maxAttempts: 2 };
const MEMBERS = [1, 2, 3, 4].map((number) => ({ id: `m${number}`, label: `M${number}`, model: `mind-${number}` }));
const JURY = [1, 2].map((number) => ({ id: `j${number}`, label: `J${number}`, model: `mind-${number}` }));
const GRACE_MS = 432_100;
const GRAPH = graphWith(
  [
    { ...NODE, id: 'ask', role: 'panel', members: MEMBERS, quorum: 3, graceMs: GRACE_MS },
    { ...NODE, id: 'rank', role: 'rank', countsIteration: false },
    { ...NODE, id: 'judge', role: 'judge', countsIteration: false },
    { ...NODE, id: 'jury', role: 'critic', members: JURY, quorum: 2, graceMs: 0 },
  ],
  [
    { id: 'e1', source: 'ask', target: 'rank', condition: null },
    { id: 'e2', source: 'rank', target: 'judge', condition: null },
    { id: 'e3', source: 'judge', target: 'jury', condition: null },
  ],
);
const PARENT = 'The sea';

describe('A fork of a deliberation', () => {
  const dir = tempDir();
  let engine: TestEngine;
  let model: ScriptedModel;
  let runId: string;
  let parent: readonly RunEvent[];

  before(async () => {
    model = scriptedModel((request, index) => replyTo(request, index));
    const { system, timers } = graceOnDemand();
    engine = await openTestEngine({ path: dir.path, model, system });
    runId = uuid();
    await engine.registry.start(runRequest(runId, { topic: PARENT, graph: GRAPH }));
    await runWhen(engine, runId, (run) => openPanels(run).some(({ until }) => until !== null));
    // The timer has measured the grace, whatever the clock shows.
    await untilTrue(() => timers.length === 1);
    timers[0]?.();
    await runWhen(engine, runId, isFinished);
    parent = await checkRecord(engine.log, runId);
  });
  after(async () => {
    await engine.stop();
    dir.remove();
  });

  it('has a parent whose hanging member was discarded when its timer called back', () => {
    expect(parent.at(-1)?.type).to.equal('RunCompleted');
    const [quorum] = factsOf(parent, 'QuorumReached');
    expect(parent.find(({ type }) => type === 'PanelClosed')?.at).to.equal(quorum?.until);
    expect(factsOf(parent, 'QuorumReached')).to.have.length(1);
    expect(factsOf(parent, 'PanelClosed').map(({ discarded }) => discarded)).to.deep.equal([['m4'], [], []]);
  });

  it('continues at each event, keeps what was recorded, and asks only for the rest', async () => {
    const forked: number[] = [];
    for (let at = 0; at < parent.length - 1; at += 1) {
      const topic = `Fork at ${at}`;
      const events = await forkedAt(at, topic);
      if (events === null) continue;
      forked.push(at);
      const before = parent.slice(0, at + 1);
      expect(events.at(-1)?.type, topic).to.equal('RunCompleted');
      const asked = model.requests.filter(({ promptInput }) => promptInput.topic === topic);
      expect(asked.map(({ model: name, promptInput }) => `${promptInput.label} ${name}`).sort(), topic).to.deep.equal(
        callsAfter(before),
      );
      // The result of the run is the answers of the panel, so it holds each that was recorded before the fork.
      const [end] = factsOf(events, 'RunCompleted');
      const kept = factsOf(before, 'NodeCompleted').flatMap(({ output }) =>
        'answer' in output ? [output.answer] : [],
      );
      for (const answer of kept) expect(end?.finalDraft, topic).to.include(answer);
      const closed = [...factsOf(before, 'PanelClosed'), ...factsOf(events, 'PanelClosed')];
      expect(
        closed.map(({ node, panelStep }) => [node, panelStep]),
        topic,
      ).to.deep.equal(CLOSED);
      expect(
        (await engine.audits.verify(events[0]?.type === 'RunRequested' ? events[0].data.runId : ''))?.firstDifference,
      ).to.equal(null);
    }
    expect(forked).to.deep.equal(Array.from({ length: parent.length - 1 }, (_, at) => at));
    expect(engine.faults).to.deep.equal([]);
  });

  /** The record of a fork when it has ended, or null if the run cannot be forked there. */
  async function forkedAt(at: number, inputTopic: string): Promise<readonly RunEvent[] | null> {
    const point = await engine.queries.forkPoint(runId, at);
    if (point?.run === null || point?.run === undefined) return null;
    const changes = { inputTopic, override: null, nodes: [], maxNodeExecutions: null };
    const forkId = uuid();
    await engine.registry.start(
      buildForkRequest(point.run, changes, {
        runId: forkId,
        bodyHash: sha256(forkId),
        actor: null,
        fullName: (model = 'scripted-1') => model,
        sha256,
      }),
    );
    await runWhen(engine, forkId, isFinished);
    return await checkRecord(engine.log, forkId);
  }
});

/** Each panel, rank and jury with its number. */
const CLOSED = [
  ['ask', 1],
  ['rank', 5],
  ['jury', 10],
];

/** The calls that a fork makes: of members without a recorded answer in a panel that has not closed, and of later nodes. */
function callsAfter(before: readonly RunEvent[]): readonly string[] {
  const closed = new Set(factsOf(before, 'PanelClosed').map(({ node }) => node));
  const done = new Set(factsOf(before, 'NodeCompleted').map(({ node, member = '' }) => `${node} ${member}`));
  // In a fork at the close of the panel or later, the discarded member reviews none of the answers.
  const all = [
    ...MEMBERS.map(({ id, model }) => ({ node: 'ask', member: id, model })),
    ...MEMBERS.map(({ id, model }) => ({ node: 'rank', member: id, model })),
    { node: 'judge', member: '', model: 'scripted-1' },
    ...JURY.map(({ id, model }) => ({ node: 'jury', member: id, model })),
  ];
  return all
    .filter(({ node, member }) => !closed.has(node) && !done.has(`${node} ${member}`))
    .map(({ node, model }) => `${node.charAt(0).toUpperCase()}${node.slice(1)} ${model}`)
    .sort();
}

/** The last member answers in forks only. */
function replyTo({ answer, promptInput, model }: ModelRequest, index: number): Reply {
  const letters = (promptInput.answers ?? []).map(({ letter }) => letter);
  switch (answer) {
    case 'draft':
      return promptInput.topic === PARENT && model === 'mind-4' ? 'hold' : { text: `Answer number ${index}.` };
    case 'output':
      return { text: '{}' };
    case 'critique':
      return { text: JSON.stringify({ score: 8, feedback: `Feedback ${index}` }) };
    case 'ranking':
      return { text: JSON.stringify({ ranking: letters, comment: `Comment ${index}` }) };
    case 'analysis':
      return { text: JSON.stringify({ ...NO_ANALYSIS, consensus: [`Point ${index}`] }) };
  }
}

const NO_ANALYSIS = { contradictions: [], partial_coverage: [], unique_insights: [], blind_spots: [] };

/** The real system, in which a test calls the timers of the time after a quorum. */
function graceOnDemand() {
  const real = nodeSystem();
  const timers: (() => void)[] = [];
  const system: System = {
    ...real,
    after(ms, callback) {
      if (ms < GRACE_MS - 60_000 || ms > GRACE_MS) return real.after(ms, callback);
      timers.push(callback);
      return () => undefined;
    },
  };
  return { system, timers };
}
