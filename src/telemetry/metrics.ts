/** The metrics of this instance in Prometheus' text format. prom-client is loaded at the first request for them. */
import type { LedgerOfService } from '../http/route.js';
import type { ModelUse } from '../models/fair-semaphore.js';
import type { System } from '../system/system.js';
import { inTime } from '../system/async/deadline.js';
import type { WebhookFigures } from '../webhooks/dispatcher.js';
import type { Counts, Labelled, Tally, ModelLabels } from './counts.js';
import { secondsBetween } from './counts.js';
import type { Metric, MetricsText } from './metric.js';

/** How long a request waits for figures that the log gives, in milliseconds. Prometheus waits 10 s for all. */
const SOURCE_MS = 2_000;

/** Unfinished runs of all instances. */
export interface UnfinishedRuns {
  readonly pending: number;
  readonly running: number;
  readonly paused: number;
  /** Start of the longest pause, ISO 8601, or null if no run is paused. */
  readonly pausedSince: string | null;
}

/** Traces of this instance's exporter. */
export interface TraceCounts {
  readonly exported: number;
  readonly refused: number;
  readonly dropped: number;
  readonly queued: number;
}

export interface MetricSources {
  readonly counts: Counts;
  /** Runs in this instance. */
  readonly runLoad: () => { readonly active: number; readonly queued: number };
  readonly modelUses: () => readonly ModelUse[];
  /** Refused callers, by reason and status. */
  readonly accessRefused: Tally;
  readonly openSockets: () => number;
  readonly openStreams: () => number;
  readonly unfinishedRuns: () => Promise<UnfinishedRuns>;
  /** How long the read models have been behind the log, in milliseconds. */
  readonly lagMs: () => Promise<number>;
  /** This clock minus that of the log's server, in milliseconds, or null if unknown or without a server. */
  readonly clockSkewMs: () => number | null;
  /** Null if no traces are exported. */
  readonly traceCounts: () => TraceCounts | null;
  readonly webhookFigures: () => WebhookFigures;
  readonly ledger: Pick<LedgerOfService, 'checkpoints'>;
  readonly system: Pick<System, 'now' | 'after'>;
}

/** @returns a function that reads all figures and returns their text */
export function metricsOf(sources: MetricSources): () => Promise<MetricsText> {
  let loaded: Promise<(metrics: readonly Metric[]) => Promise<MetricsText>> | null = null;
  return async () => {
    loaded ??= import('./prometheus-text.js').then(({ prometheusText }) => prometheusText());
    const [write, unfinished, lagMs] = await Promise.all([
      loaded,
      inAnswer(sources.unfinishedRuns, sources),
      inAnswer(sources.lagMs, sources),
    ]);
    return await write([
      ...runMetrics(sources, unfinished),
      ...modelMetrics(sources),
      ...serviceMetrics(sources, lagMs),
      ...webhookMetrics(sources),
      gauge(
        'council_ledger_contradicted',
        '1 if the ledger contradicts its newest checkpoint, else 0.',
        sources.ledger.checkpoints.fault === null ? 0 : 1,
      ),
    ]);
  };
}

/** What a source answers in time, or null if it does not. Then its figures are absent, and the others are reported. */
async function inAnswer<T>(ask: () => Promise<T>, { system }: Pick<MetricSources, 'system'>): Promise<T | null> {
  try {
    return await inTime(ask, { system, maxMs: SOURCE_MS, late: () => new Error('The source is late') });
  } catch {
    return null;
  }
}

function runMetrics({ counts, runLoad, system }: MetricSources, unfinished: UnfinishedRuns | null): readonly Metric[] {
  const { active, queued } = runLoad();
  const here: readonly Metric[] = [
    counter('council_runs_started', 'Runs that this instance recorded, forks among them.', [], counts.runsStarted),
    counter('council_runs_ended', 'Runs whose end this instance recorded.', ['status'], counts.runsEnded),
    {
      kind: 'histogram',
      name: 'council_run_duration_seconds',
      labels: ['status'],
      from: counts.runSeconds,
      help: 'Time from the start of a run to the end that this instance recorded, pauses included.',
    },
    {
      kind: 'histogram',
      name: 'council_pause_duration_seconds',
      labels: ['action'],
      from: counts.pauseSeconds,
      help: 'Time that a pause waited for the decision that this instance recorded.',
    },
    {
      kind: 'histogram',
      name: 'council_node_duration_seconds',
      labels: ['role'],
      from: counts.nodeSeconds,
      help: 'Duration of a completed attempt of a node in this instance, by the role of the node.',
    },
    gauge('council_runs_active', 'Runs that this instance is running.', active),
    gauge('council_runs_queued', 'Pending runs that wait for a slot in this instance.', queued),
  ];
  if (unfinished === null) return here;
  const { pausedSince, ...byStatus } = unfinished;
  const age = ageOf(pausedSince, system);
  return [
    ...here,
    {
      kind: 'gauge',
      name: 'council_runs_unfinished',
      labels: ['status'],
      help: 'Unfinished runs of all instances. The paused ones wait for an approval.',
      values: valuesOf(byStatus),
    },
    gauge('council_approvals_waiting', 'Pauses of all instances that wait for a decision.', byStatus.paused),
    gauge('council_approvals_oldest_wait_seconds', 'Age of the longest of these waits, 0 without one.', age),
  ];
}

const MODEL = ['provider', 'model'];

function modelMetrics({ counts, modelUses }: MetricSources): readonly Metric[] {
  const uses = modelUses();
  const known = 'as far as providers report them, of attempts that ended in this instance.';
  return [
    {
      kind: 'counter',
      name: 'council_model_calls_total',
      labels: [...MODEL, 'outcome'],
      help: 'Calls to models that ended in this instance: answered, or the kind of the failure.',
      values: counts.modelCalls.all(),
    },
    {
      kind: 'histogram',
      name: 'council_model_call_duration_seconds',
      labels: MODEL,
      help: 'Duration of these calls, without the wait for a slot.',
      from: counts.modelCallSeconds,
    },
    counter('council_model_input_tokens', `Input tokens, ${known}`, MODEL, counts.inputTokens),
    counter('council_model_cached_input_tokens', `Cached input tokens, ${known}`, MODEL, counts.cachedInputTokens),
    counter('council_model_output_tokens', `Output tokens, ${known}`, MODEL, counts.outputTokens),
    counter('council_model_reasoning_tokens', `Reasoning tokens, ${known}`, MODEL, counts.reasoningTokens),
    counter('council_model_cost_usd', 'US dollars of these attempts, of models with a price.', MODEL, counts.costUsd),
    {
      kind: 'gauge',
      name: 'council_model_calls_in_flight',
      labels: MODEL,
      help: 'Calls to models in progress in this instance.',
      values: byLabel(uses, counts.labels, ({ active }) => active),
    },
    {
      kind: 'gauge',
      name: 'council_model_calls_waiting',
      labels: MODEL,
      help: 'Calls that wait for a slot in this instance.',
      values: byLabel(uses, counts.labels, ({ waiting }) => waiting),
    },
  ];
}

function serviceMetrics(
  { counts, accessRefused, openSockets, openStreams, traceCounts, clockSkewMs }: MetricSources,
  lagMs: number | null,
): readonly Metric[] {
  const [traces, skewMs] = [traceCounts(), clockSkewMs()];
  return [
    {
      kind: 'histogram',
      name: 'council_log_append_duration_seconds',
      labels: [],
      from: counts.appendSeconds,
      help: 'Time until the event log acknowledged an append of this instance.',
    },
    counter(
      'council_access_refused',
      'Requests and upgrades that this instance refused because of their caller.',
      ['reason', 'status'],
      accessRefused,
    ),
    gauge('council_sockets_open', 'Open WebSockets of this instance.', openSockets()),
    gauge('council_event_streams_open', 'Open event streams of this instance.', openStreams()),
    ...(lagMs === null
      ? []
      : [gauge('council_projection_lag_seconds', 'Time that the read models are behind the log.', lagMs / 1_000)]),
    ...(skewMs === null
      ? []
      : [gauge('council_clock_skew_seconds', "This clock minus the clock of the event log's server.", skewMs / 1_000)]),
    ...(traces === null ? [] : traceMetrics(traces)),
  ];
}

function traceMetrics({ queued, ...ended }: TraceCounts): readonly Metric[] {
  return [
    {
      kind: 'counter',
      name: 'council_traces_total',
      labels: ['outcome'],
      help: 'Ended runs: exported as a trace, refused by the collector, or dropped because the queue was full.',
      values: valuesOf(ended),
    },
    gauge('council_traces_queued', 'Ended runs whose trace waits for the collector.', queued),
  ];
}

/** No label names a webhook, because there may be a thousand. */
function webhookMetrics({ webhookFigures, system }: MetricSources): readonly Metric[] {
  const { attempts, webhooks, waiting, waitingSince } = webhookFigures();
  const age = ageOf(waitingSince, system);
  return [
    {
      kind: 'counter',
      name: 'council_webhook_attempts_total',
      labels: ['result'],
      values: valuesOf(attempts),
      help: 'Attempts of this instance: delivered, retried (failed, to be tried again), or failed for good.',
    },
    {
      kind: 'gauge',
      name: 'council_webhooks',
      labels: ['state'],
      values: valuesOf(webhooks),
      help: 'Webhooks of the log: active, disabled by an answer 410, or corrupt.',
    },
    gauge('council_webhook_deliveries_waiting', 'Deliveries that wait in the memory of this instance.', waiting),
    gauge('council_webhook_oldest_wait_seconds', 'Longest time since the first attempt at one of these, or 0.', age),
  ];
}

/** Seconds since a time, or 0 without one. */
function ageOf(since: string | null, { now }: Pick<System, 'now'>): number {
  return since === null ? 0 : secondsBetween(since, now());
}

/** Numbers by label, as values of a metric with one label. */
function valuesOf(numbers: Readonly<Record<string, number>>): readonly Labelled<number>[] {
  return Object.entries(numbers).map(([label, value]) => ({ labels: [label], value }));
}

function counter(name: string, help: string, labels: readonly string[], tally: Tally): Metric {
  return { kind: 'counter', name: `${name}_total`, help, labels, values: tally.all() };
}

function gauge(name: string, help: string, value: number): Metric {
  return { kind: 'gauge', name, help, labels: [], values: [{ labels: [], value }] };
}

/** Sums of models with the same label; 0 for models that have answered before. */
function byLabel(
  uses: readonly ModelUse[],
  known: ModelLabels,
  valueOf: (use: ModelUse) => number,
): readonly Labelled<number>[] {
  const sums = new Map<string, Labelled<number>>(
    known.own().map((labels) => [labels.join('\n'), { labels, value: 0 }]),
  );
  for (const use of uses) {
    const labels = known.of(use.model);
    const key = labels.join('\n');
    sums.set(key, { labels, value: (sums.get(key)?.value ?? 0) + valueOf(use) });
  }
  return [...sums.values()];
}
