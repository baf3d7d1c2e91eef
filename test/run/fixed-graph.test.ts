import { expect } from 'chai';
import { fixedGraph } from '../../src/council/fixed-graph.js';
import { promptInputFor } from '../../src/run/frontier/node-start.js';
import type { Story } from '../support/given.js';
import { attemptOf, broke, given, scored, wrote } from '../support/given.js';
import { flatState } from '../support/whole-run.js';

const graph = fixedGraph({ timeoutMs: 1_000, maxAttempts: 4 });
const MASTER = 'master_agent';
const CRITIC = 'critic_agent';
const WRITER = 'writer_agent';

const council = (): Story => given(graph, { topic: 'The sea' });

/** The council after drafts with these scores. */
function scoredSoFar(...scores: readonly number[]): Story {
  return scores.reduce(
    (story, score, index) =>
      story.whenAll(wrote(MASTER, `Draft ${index + 1}`), scored(CRITIC, score, `Feedback ${index + 1}`)),
    council(),
  );
}

describe('The fixed graph', () => {
  it('claims the run and starts it with the master in one append', () => {
    council().then('RunRequested', 'RunClaimed started 1 by one', 'RunStarted 1', 'NodeStarted master_agent 1.1');
  });

  it('records only the request while there is no slot', () => {
    const waiting = given(graph, { pending: true }).then('RunRequested');
    expect(flatState(waiting.run)).to.include({ status: 'pending', activeNode: null, owner: null });
    waiting
      .when({ type: 'ClaimRun', reason: 'started' })
      .then('RunClaimed started 1 by one', 'RunStarted 1', 'NodeStarted master_agent 1.1');
  });

  it('goes through scores 6, 7 and 8 to the writer, with a result and the next start in each append', () => {
    council()
      .when(wrote(MASTER, 'Draft 1'))
      .then('NodeCompleted master_agent 1.1 -> critic_agent', 'NodeStarted critic_agent 2.1')
      .when(scored(CRITIC, 6))
      .then('NodeCompleted critic_agent 2.1 -> master_agent', 'NodeStarted master_agent 3.1')
      .whenAll(wrote(MASTER, 'Draft 2'), scored(CRITIC, 7))
      .then('NodeCompleted critic_agent 4.1 -> master_agent', 'NodeStarted master_agent 5.1')
      .whenAll(wrote(MASTER, 'Draft 3'), scored(CRITIC, 8))
      .then('NodeCompleted critic_agent 6.1 -> writer_agent', 'NodeStarted writer_agent 7.1')
      .when(wrote(WRITER, 'Polished'))
      .then('NodeCompleted writer_agent 7.1 ->', 'RunCompleted: Polished (8, 3)');
  });

  for (const [score, next] of [
    [7.99, MASTER],
    [8, WRITER],
    [0, MASTER],
    [10, WRITER],
  ] as const) {
    it(`goes from the critic to ${next} at a score of ${score}`, () => {
      expect(scoredSoFar(score).run.progress.activeNode).to.equal(next);
    });
  }

  it('goes to the writer after five drafts, with the last score', () => {
    const capped = scoredSoFar(1, 2, 3, 4, 5);
    capped.then('NodeCompleted critic_agent 10.1 -> writer_agent', 'NodeStarted writer_agent 11.1');
    expect(capped.run.progress.shown).to.include({ score: 5, verdict: 'approve', draft: 'Draft 5' });
    capped.when(wrote(WRITER, 'Polished')).then('NodeCompleted writer_agent 11.1 ->', 'RunCompleted: Polished (5, 5)');
  });

  it('shows the node that started last, and "done" after completion', () => {
    const shown = [council(), scoredSoFar(6), scoredSoFar(8), scoredSoFar(8).when(wrote(WRITER))];
    expect(shown.map(({ run }) => run.progress.activeNode)).to.deep.equal([MASTER, MASTER, WRITER, 'done']);
    expect(flatState(scoredSoFar(8).when(broke(WRITER)).run)).to.include({ status: 'failed', activeNode: WRITER });
  });

  it('gives the master the draft and all feedback, oldest first', () => {
    const { run } = scoredSoFar(3, 4);
    expect(promptInputFor(run, attemptOf(run, MASTER))).to.include({ topic: 'The sea', draft: 'Draft 2' });
    expect(promptInputFor(run, attemptOf(run, MASTER)).feedback).to.deep.equal(['Feedback 1', 'Feedback 2']);
  });

  it('records every field of its events', () => {
    const [requested, claimed, started, node] = council().facts;
    expect(requested?.data).to.deep.include({
      inputTopic: 'The sea',
      godMode: false,
      executionMode: 'auto-pilot',
      graph,
    });
    expect(requested?.data).to.deep.include({
      limits: { maxIterations: 5, passScore: 8, maxNodeExecutions: 50, maxTakeovers: 5 },
    });
    expect(claimed?.data).to.deep.equal({ epoch: 1, instanceId: 'one', reason: 'started' });
    expect(started?.data).to.deep.equal({ epoch: 1 });
    expect(node?.data)
      .to.have.property('inputHash')
      .that.matches(/^sha256 of \d+ characters$/);
    expect(node?.data).to.deep.include({
      step: 1,
      node: MASTER,
      attempt: 1,
      iteration: 0,
      model: 'model-1',
      tools: [],
      delayMs: 0,
    });
    const [critique] = scoredSoFar(6.5).facts;
    expect(critique?.data).to.deep.equal({
      step: 2,
      node: CRITIC,
      attempt: 1,
      model: 'model-1',
      output: { score: 6.5, feedback: 'Feedback 1' },
      usage: { inputTokens: 10, outputTokens: 5 },
      durationMs: 7,
      route: { next: [MASTER], reason: 'condition rework' },
    });
  });

  it("uses a node's own model", () => {
    const nodes = graph.nodes.map((node) => (node.id === CRITIC ? { ...node, model: 'judge-9' } : node));
    const [, start] = given({ ...graph, nodes }).when(wrote(MASTER)).facts;
    expect(start?.data).to.include({ node: CRITIC, model: 'judge-9' });
  });

  it('uses the limits in its record, not the current ones', () => {
    const capped = given(graph, { limits: { maxIterations: 2, passScore: 5 } })
      .whenAll(wrote(MASTER), scored(CRITIC, 4.9))
      .whenAll(wrote(MASTER), scored(CRITIC, 1));
    expect(capped.run.progress.activeNode).to.equal(WRITER);
    expect(
      given(graph, { limits: { passScore: 5 } }).whenAll(wrote(MASTER), scored(CRITIC, 5)).run.progress.activeNode,
    ).to.equal(WRITER);
  });
});
