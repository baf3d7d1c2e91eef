/** Writes metrics with prom-client, which adds the metrics of the process. */
import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from 'prom-client';
import type { Metric, MetricsText } from './metric.js';
import type { Labelled, Spread } from './counts.js';

/** Gauges of prom-client that are omitted, because they have names of counters, which promtool reports. */
const MISNAMED = ['nodejs_active_handles_total', 'nodejs_active_requests_total', 'nodejs_active_resources_total'];

type HistogramMetric = Extract<Metric, { readonly kind: 'histogram' }>;
/** A line of a histogram, in prom-client's form. */
interface Series {
  readonly metricName: string;
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
}

/** A function that writes metrics. From this call on, prom-client measures the process and its event loop. */
export function prometheusText(): (metrics: readonly Metric[]) => Promise<MetricsText> {
  const ofProcess = new Registry();
  collectDefaultMetrics({ register: ofProcess });
  for (const name of MISNAMED) ofProcess.removeSingleMetric(name);
  return async (metrics) => {
    const registry = new Registry();
    for (const metric of metrics) {
      if (metric.kind === 'histogram') registry.registerMetric(new CountedHistogram(metric));
      else register(metric, registry);
    }
    return { type: registry.contentType, text: `${await registry.metrics()}\n${await ofProcess.metrics()}` };
  };
}

function register(metric: Exclude<Metric, HistogramMetric>, registry: Registry): void {
  const { kind, name, help, labels: labelNames } = metric;
  const configuration = { name, help, labelNames, registers: [registry] };
  const written = kind === 'counter' ? new Counter(configuration) : new Gauge(configuration);
  for (const { labels, value } of metric.values) written.inc(labelled(labelNames, labels), value);
}

/** A histogram of values that were counted before: prom-client's own counts each value when it is observed. */
class CountedHistogram extends Histogram {
  readonly #metric: HistogramMetric;

  constructor(metric: HistogramMetric) {
    super({ name: metric.name, help: metric.help, labelNames: metric.labels, registers: [] });
    this.#metric = metric;
  }

  /** What the registry writes. */
  async getForPromString() {
    const { name, help, from } = this.#metric;
    return { name, help, type: 'histogram', values: from.all().flatMap((spread) => seriesOf(this.#metric, spread)) };
  }
}

/** The cumulative buckets, the sum and the count. */
function seriesOf(metric: HistogramMetric, { labels, value }: Labelled<Spread>): readonly Series[] {
  const own = labelled(metric.labels, labels);
  let count = 0;
  const buckets = value.counts.map((each, index) => {
    count += each;
    const le = metric.from.bounds[index] ?? '+Inf';
    return { metricName: `${metric.name}_bucket`, labels: { le, ...own }, value: count };
  });
  const sum = { metricName: `${metric.name}_sum`, labels: own, value: value.sum };
  return [...buckets, sum, { metricName: `${metric.name}_count`, labels: own, value: count }];
}

function labelled(names: readonly string[], values: readonly string[]): Record<string, string> {
  return Object.fromEntries(names.map((name, index) => [name, values[index] ?? '']));
}
