/** Reads the metrics of a context. */
import type { RunQueries } from '../projections/run-queries.js';
import type { MetricsText } from '../telemetry/metric.js';
import type { MetricSources, UnfinishedRuns } from '../telemetry/metrics.js';
import { metricsOf } from '../telemetry/metrics.js';
import type { Context } from './context.js';

type Edges = Pick<
  MetricSources,
  'accessRefused' | 'openSockets' | 'openStreams' | 'traceCounts' | 'webhookFigures' | 'ledger' | 'system'
>;

/** @returns a function that reads all figures and returns their text */
export function metricsWith(context: Context, edges: Edges): () => Promise<MetricsText> {
  const { counts, registry, model, queries, readiness, members } = context;
  return metricsOf({
    ...edges,
    counts,
    runLoad: () => registry.counts(),
    modelUses: () => model.uses(),
    unfinishedRuns: () => unfinishedRuns(queries),
    lagMs: () => readiness.lagMs(),
    clockSkewMs: () => members.clockSkewMs(),
  });
}

/** Counts no ended runs: with a million of them, that takes 60 ms at each scrape. */
async function unfinishedRuns(queries: Pick<RunQueries, 'count' | 'list'>): Promise<UnfinishedRuns> {
  const [pending, running, paused, [longest]] = await Promise.all([
    queries.count({ status: 'pending', withChildren: true }),
    queries.count({ status: 'running', withChildren: true }),
    queries.count({ status: 'paused', withChildren: true }),
    queries.list({ limit: 1, offset: 0, filter: { status: 'paused', withChildren: true }, sort: 'waiting' }),
  ]);
  return { pending, running, paused, pausedSince: longest?.waitingSince ?? null };
}
