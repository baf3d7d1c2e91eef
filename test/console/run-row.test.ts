import { expect } from 'chai';
import type { FeedEvent } from '../../src/client/feed.js';
import type { HistoryRecord } from '../../src/generated/schemas.js';
import type { RunRow } from '../../src/console/pages/runs/run-row.js';
import { rowAfter, rowOf, usageTexts } from '../../src/console/pages/runs/run-row.js';

const ROW: RunRow = {
  id: 'run',
  topic: 'The sea',
  status: 'pending',
  isGodMode: true,
  blueprintId: null,
  actor: null,
  score: null,
  iterations: null,
  inputTokens: null,
  outputTokens: null,
  calls: 2,
  costUsd: null,
  isUnpriced: false,
  createdAt: '2026-01-01T00:00:00.000Z',
  durationMs: null,
  waitingSince: null,
  error: null,
  isTrial: false,
  excerpt: null,
};

const PLACED = { seq: 3, id: 'event', at: '2026-01-01T00:01:00.000Z', hash: '', run_id: 'run' };
const PAUSED: FeedEvent = {
  ...PLACED,
  type: 'RunPaused',
  data: { gate: 1, nextNodes: ['critic'], criticScore: 6, iteration: 1 },
};
const RESUMED: FeedEvent = { ...PLACED, type: 'RunResumed', data: { epoch: 2, gate: 1, nextNodes: ['critic'] } };
const FAILED: FeedEvent = { ...PLACED, type: 'RunFailed', data: { kind: 'rejected', error: 'No', node: null } };

describe('A row of the list of runs', () => {
  it('shows the start of a pause until the run resumes', () => {
    const paused = rowAfter(ROW, PAUSED);
    expect(paused).to.include({ status: 'paused', waitingSince: PLACED.at, score: 6, iterations: 1 });
    expect(rowAfter(paused, RESUMED)).to.include({ status: 'running', waitingSince: null, score: 6 });
  });

  it('names the pause for the budget that was rejected, not God Mode', () => {
    const data = { kind: 'rejected' as const, error: 'Rejected by the user in God Mode', node: null };
    const failed: FeedEvent = { ...PLACED, type: 'RunFailed', data };
    expect(rowAfter({ ...ROW, isGodMode: false }, failed).error).to.equal('Rejected at the pause for the budget');
    expect(rowAfter({ ...ROW, isGodMode: true }, failed).error).to.equal(data.error);
  });

  it('has the tokens and the cost of the run, null if they are unknown', () => {
    const record: HistoryRecord = {
      id: 'run',
      blueprint_id: null,
      actor: null,
      input_topic: 'The sea',
      material_bytes: 0,
      status: 'running',
      execution_mode: 'auto-pilot',
      final_draft: null,
      critic_score: null,
      iteration_count: null,
      error: null,
      created_at: ROW.createdAt,
      completed_at: null,
      duration_ms: null,
      waited_ms: 0,
      usage: null,
      trial: false,
    };
    expect(rowOf(record)).to.include({ inputTokens: null, outputTokens: null, costUsd: null });
    const usage = {
      input_tokens: 30,
      output_tokens: 15,
      cached_input_tokens: 4,
      reasoning_tokens: null,
      cost_usd: 0.5,
      calls: 3,
      repeated_calls: 0,
      unmetered_calls: 0,
      unpriced_calls: 0,
      by_model: [],
    };
    expect(rowOf({ ...record, usage })).to.include({ inputTokens: 30, outputTokens: 15, costUsd: 0.5 });
    const unpriced = { ...usage, cost_usd: null, unpriced_calls: 3 };
    const { by_model: _, ...ofModel } = { ...unpriced, model: 'openai/gpt-x' };
    expect(rowOf({ ...record, usage: { ...unpriced, by_model: [ofModel] } })).to.include({ isUnpriced: true });
  });

  it('shows what is unknown as such, never as 0', () => {
    const over = { ...ROW, status: 'completed' } as const;
    expect(usageTexts({ ...over, inputTokens: 30 })).to.deep.equal(['30 in ? out', 'cost not reported']);
    const unpriced = { ...over, inputTokens: 30, outputTokens: 15, isUnpriced: true };
    expect(usageTexts(unpriced)).to.deep.equal(['30 in 15 out', 'no price']);
    expect(usageTexts({ ...over, costUsd: 0 })).to.deep.equal(['$0']);
    expect(usageTexts(over)).to.deep.equal(['not reported']);
    expect(usageTexts({ ...over, calls: 0 })).to.deep.equal(['no calls']);
    expect(usageTexts({ ...ROW, calls: 0 })).to.deep.equal(['–']);
  });

  it('stays ended if an earlier event arrives late', () => {
    const failed = rowAfter(ROW, FAILED);
    expect(failed).to.include({ status: 'failed', error: 'No', durationMs: 60_000 });
    expect(rowAfter(failed, PAUSED)).to.equal(failed);
  });
});
