/** `GET /metrics` for Prometheus. */
import type { Route } from '../http/route.js';
import type { MetricsText } from './metric.js';

/** @param token what a scraper may send in place of a key, or null if there is none */
export function metricsRoute(metrics: () => Promise<MetricsText>, token: string | null): Route {
  return {
    method: 'GET',
    path: '/metrics',
    access: 'read',
    token,
    name: 'getMetrics',
    summary: "Returns the metrics of this instance in Prometheus' text format",
    description: 'Accepts the token of METRICS_TOKEN in place of a key, then under any Host.',
    tag: 'health',
    success: { status: 200, description: 'Text format 0.0.4', schema: null, mediaType: 'text/plain' },
    async handle() {
      const { type, text } = await metrics();
      return { status: 200, body: text, type };
    },
  };
}
