import { expect } from 'chai';
import { isRunSummary, summaryOf } from '../../src/projections/run-summary.js';
import type { Story } from '../support/given.js';
import { broke, given, graphOf, RUN_ID, scored, wrote } from '../support/given.js';

const council = graphOf(`
  write -> judge?
  judge? -rework-> write
  judge? -approve-> polish
`);
const AT = '2026-01-01T00:00:00.000Z';

const NO_CALLS = {
  calls: 0,
  repeatedCalls: 0,
  toldCalls: 0,
  inputTokens: null,
  outputTokens: null,
  cachedInputTokens: null,
  reasoningTokens: null,
  costUsd: null,
  pricedCalls: 0,
};

const paused = (): Story => given(council, { godMode: true });

describe('summaryOf', () => {
  it('shows the request of a pending run', () => {
    expect(summaryOf(given(council, { pending: true }).run)).to.deep.equal({
      id: RUN_ID,
      seq: 0,
      blueprintId: null,
      actor: null,
      parent: null,
      inputTopic: 'The sea',
      status: 'pending',
      executionMode: 'auto-pilot',
      owner: null,
      activeNode: null,
      finalDraft: null,
      criticScore: null,
      iterationCount: null,
      error: null,
      failureKind: null,
      isTrial: false,
      createdAt: AT,
      completedAt: null,
      waitingSince: null,
      deadlineAt: null,
      approvers: null,
      waitedMs: 0,
      usage: { ...NO_CALLS, byModel: [] },
      session: null,
    });
  });

  it('shows the node, the last score and the drafts so far of a running run, but no final draft', () => {
    const { run } = given(council).whenAll(wrote('write', 'Draft'), scored('judge', 5.5));
    expect(summaryOf(run)).to.include({
      status: 'running',
      activeNode: 'write',
      finalDraft: null,
      criticScore: 5.5,
      iterationCount: 1,
      completedAt: null,
    });
  });

  it('shows the draft, score and time of a completed run', () => {
    const { run } = given(graphOf('write -> judge?')).whenAll(wrote('write', 'Draft'), scored('judge', 0));
    expect(summaryOf(run)).to.include({
      status: 'completed',
      activeNode: 'done',
      finalDraft: 'Draft',
      criticScore: 0,
      iterationCount: 1,
      error: null,
      completedAt: AT,
    });
  });

  it('shows the error and time of a failed run, and no final draft', () => {
    const { run } = given(council).whenAll(wrote('write'), broke('judge'));
    expect(summaryOf(run)).to.include({
      status: 'failed',
      activeNode: 'judge',
      finalDraft: null,
      iterationCount: 1,
      error: 'Node "judge": The model is ill',
      completedAt: AT,
    });
  });

  it('keeps the topic of the start after a human changes it', () => {
    const { run } = paused().whenModified({ input_topic: 'Rivers' });
    expect(summaryOf(run).inputTopic).to.equal('The sea');
  });

  it('has null iterations after a human sets them to 0', () => {
    const { run } = paused().whenApproved().when(wrote('write')).whenModified({ iteration_count: 0 });
    expect(summaryOf(run).iterationCount).to.equal(null);
  });

  it('has no session without God Mode in any status', () => {
    for (const story of [given(council), given(council).when({ type: 'CancelRun', actor: null })]) {
      expect(summaryOf(story.run).session).to.equal(null);
    }
  });

  it('has a session in God Mode in every status, with nodes only while paused', () => {
    const writing = paused().whenApproved();
    const judging = writing.when(wrote('write', 'Draft'));
    const rejected = judging.whenDecided({ action: 'reject', modifiedState: null });
    const stories = [given(council, { godMode: true, pending: true }), paused(), writing, judging, rejected];
    expect(stories.map(({ run }) => summaryOf(run).session)).to.deep.equal([
      { nextNodes: [], currentDraft: null },
      { nextNodes: ['write'], currentDraft: null },
      { nextNodes: [], currentDraft: null },
      { nextNodes: ['judge'], currentDraft: 'Draft' },
      { nextNodes: [], currentDraft: 'Draft' },
    ]);
    expect(summaryOf(paused().run)).to.include({ executionMode: 'god-mode', blueprintId: 'blueprint' });
  });

  it('shows all nodes of a paused frontier', () => {
    const { run } = given(graphOf('plan -> left, right'), { godMode: true }).whenApproved().when(wrote('plan', 'P'));
    expect(summaryOf(run)).to.deep.include({
      activeNode: 'left',
      session: { nextNodes: ['left', 'right'], currentDraft: 'P' },
    });
  });
});

describe('isRunSummary', () => {
  const summary = summaryOf(given(council).when(wrote('write')).run);

  it('accepts a summary, and one whose usage is unknown', () => {
    expect(isRunSummary(JSON.parse(JSON.stringify(summary)))).to.equal(true);
    expect(isRunSummary({ ...summary, usage: null })).to.equal(true);
  });

  it('refuses a usage that lacks one of its totals, also of a model', () => {
    for (const field of Object.keys(NO_CALLS)) {
      const { usage } = summary;
      expect(isRunSummary({ ...summary, usage: { ...usage, [field]: undefined } }), field).to.equal(false);
      const byModel = usage?.byModel.map((each) => ({ ...each, [field]: 'many' }));
      expect(isRunSummary({ ...summary, usage: { ...usage, byModel } }), `${field} of a model`).to.equal(false);
    }
  });
});
