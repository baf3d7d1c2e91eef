/** Runs as rows of the stored history. */
import type { RunSummary } from '../../src/projections/run-summary.js';

type Usage = NonNullable<RunSummary['usage']>;

/** The usage of one call to a model, with these amounts changed. */
export function usageWith(model: string, amounts: Partial<Usage['byModel'][number]> = {}): Usage {
  const counts = { calls: 1, repeatedCalls: 0, toldCalls: 1, pricedCalls: 1 };
  const tokens = { inputTokens: 0, outputTokens: 0, cachedInputTokens: null, reasoningTokens: null };
  const used = { model, ...counts, ...tokens, costUsd: 0, ...amounts };
  const { model: _, ...all } = used;
  return { ...all, byModel: [used] };
}

/** A running run of the built-in council, with these fields changed. */
export function summaryWith(id: string, fields: Partial<RunSummary> = {}): RunSummary {
  return {
    id,
    seq: 0,
    blueprintId: null,
    actor: null,
    parent: null,
    owner: null,
    inputTopic: 'The sea',
    status: 'running',
    executionMode: 'auto-pilot',
    activeNode: null,
    finalDraft: null,
    criticScore: null,
    iterationCount: null,
    error: null,
    failureKind: null,
    isTrial: false,
    createdAt: '2026-01-01T00:00:00.000Z',
    completedAt: null,
    waitingSince: null,
    deadlineAt: null,
    approvers: null,
    waitedMs: 0,
    usage: null,
    session: null,
    ...fields,
  };
}
