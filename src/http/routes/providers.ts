/** The providers of models. */
import type { HttpContext, Route } from '../route.js';

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
