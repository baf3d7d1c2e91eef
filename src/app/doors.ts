/** The doors of the service for other programs. */
import type { Config } from '../config.js';
import type { Door } from '../http/route.js';
import { mcpRoutes } from '../mcp/route.js';
import { openAiDoor } from '../openai-api/door.js';
import { OPENAI_PROBLEMS } from '../openai-api/errors.js';
import { metricsRoute } from '../telemetry/metrics-route.js';
import type { MetricsText } from '../telemetry/metric.js';
import type { Context } from './context.js';

/** The forms of errors at the doors, which also apply before the context is created. */
export const PROBLEM_FORMS = [OPENAI_PROBLEMS];

/** @param metrics reads the metrics */
export function doorsOf(context: Context, config: Config, metrics: () => Promise<MetricsText>): readonly Door[] {
  return [() => [metricsRoute(metrics, config.metricsToken)], mcpRoutes, openAiDoorOf(context, config)];
}

function openAiDoorOf({ model, feed, views }: Context, { modelTimeoutMs }: Config): Door {
  const isFollowed = (runId: string): boolean => feed.watchersOf(runId) > 0 || views.isWatched(runId);
  return openAiDoor({ model, modelTimeoutMs, isFollowed });
}
