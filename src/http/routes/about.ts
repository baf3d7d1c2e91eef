/** This instance of the service, and the prices of models. */
import type { HttpContext, Route } from '../route.js';
import { serviceInfo } from '../openapi.js';

/** GET /api/about and GET /api/prices. */
export function aboutRoutes(http: HttpContext): readonly Route[] {
  return [aboutRoute(http), pricesRoute(http)];
}

function aboutRoute({ system, withinDeadline, logInfo, providers }: HttpContext): Route {
  const startedAt = system.now();
  const startedMs = system.monotonicMs();
  return {
    method: 'GET',
    path: '/api/about',
    access: 'read',
    name: 'getAbout',
    summary: 'Returns the version, the log and the default model of this instance',
    tag: 'health',
    success: { status: 200, description: 'The instance', schema: 'about.json' },
    async handle() {
      const log = await withinDeadline(logInfo());
      const [provider] = providers();
      return {
        status: 200,
        body: {
          service: 'council-run-service',
          version: serviceInfo()['version'],
          node: process.version,
          started_at: startedAt,
          uptime_ms: Math.round(system.monotonicMs() - startedMs),
          log,
          default_provider: provider?.name ?? '',
          default_model: provider?.default_model ?? '',
          offline: provider?.api === 'offline',
        },
      };
    },
  };
}

function pricesRoute({ prices }: HttpContext): Route {
  return {
    method: 'GET',
    path: '/api/prices',
    access: 'read',
    name: 'listPrices',
    summary: 'Lists the prices that the service charges for calls to models',
    tag: 'health',
    success: { status: 200, description: 'The prices', schema: 'price-list.json' },
    handle: async () => ({ status: 200, body: [...prices()] }),
  };
}
