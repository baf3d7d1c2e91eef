/** This instance of the service, and the prices of models. */
import type { HttpContext, Route } from '../route.js';
import { serviceInfo } from '../openapi.js';
import { readdir, readFile } from 'node:fs/promises';

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

/** Relative to dist/src/http/routes, where this file runs. */
const FOLDER = new URL('../../../../schemas/examples/', import.meta.url);

/** GET /api/examples. */
export function exampleRoutes(): readonly Route[] {
  return [
    {
      method: 'GET',
      path: '/api/examples',
      access: 'read',
      name: 'listExamples',
      summary: 'Lists the example councils of the service',
      description: 'Each is a body for `POST /api/councils/`, with a `description` that is not saved.',
      tag: 'blueprints',
      success: { status: 200, description: 'The examples, by id', schema: 'example-list.json' },
      handle: async () => ({ status: 200, body: await readExamples() }),
    },
  ];
}

async function readExamples(): Promise<readonly unknown[]> {
  const names = (await readdir(FOLDER)).filter((name) => name.endsWith('.blueprint.json')).toSorted();
  const texts = await Promise.all(names.map((name) => readFile(new URL(name, FOLDER), 'utf8')));
  return texts.map((text): unknown => JSON.parse(text));
}

/** GET /api/providers. */
export function providerRoutes({ providers }: Pick<HttpContext, 'providers'>): readonly Route[] {
  return [
    {
      method: 'GET',
      path: '/api/providers',
      access: 'read',
      name: 'listProviders',
      summary: 'Lists the configured providers of models',
      description: 'As this instance sees them: another instance may have another state. No key is shown.',
      tag: 'health',
      success: { status: 200, description: 'The providers, the default first', schema: 'provider-list.json' },
      handle: async () => ({ status: 200, body: [...providers()] }),
    },
  ];
}
