/** The doors of the service for other programs. */
import type { Config } from '../config.js';
import type { Door } from '../http/route.js';
import { mcpRoutes } from '../mcp/route.js';
import { openAiDoor } from '../openai-api/door.js';
import { OPENAI_PROBLEMS } from '../openai-api/errors.js';
import { metricsRoute } from '../telemetry/metrics-route.js';
import type { MetricsText } from '../telemetry/metric.js';
import type { Context } from './context.js';
import type { Webhooks } from './webhooks.js';

/** The forms of errors at the doors, which also apply before the context is created. */
export const PROBLEM_FORMS = [OPENAI_PROBLEMS];

export interface DoorParts {
  /** Reads the metrics. */
  readonly metrics: () => Promise<MetricsText>;
  readonly webhooks: Webhooks;
}

export function doorsOf(
  { model }: Context,
  { metricsToken, modelTimeoutMs }: Config,
  { metrics, webhooks }: DoorParts,
): readonly Door[] {
  const metricsDoor: Door = () => [metricsRoute(metrics, metricsToken)];
  return [metricsDoor, mcpRoutes, openAiDoor({ model, modelTimeoutMs }), webhooks.door];
}
