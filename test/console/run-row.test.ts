import { expect } from 'chai';
import type { FeedEvent } from '../../src/client/feed.js';
import type { RunRow } from '../../src/console/pages/runs/run-row.js';
import { rowAfter } from '../../src/console/pages/runs/run-row.js';

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
  costUsd: null,
  createdAt: '2026-01-01T00:00:00.000Z',
  durationMs: null,
  waitingSince: null,
  error: null,
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

  it('stays ended if an earlier event arrives late', () => {
    const failed = rowAfter(ROW, FAILED);
    expect(failed).to.include({ status: 'failed', error: 'No', durationMs: 60_000 });
    expect(rowAfter(failed, PAUSED)).to.equal(failed);
  });
});
