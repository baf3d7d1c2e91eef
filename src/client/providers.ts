/** The providers of models. */
import type { ProviderList } from '../generated/schemas.js';
import type { Api, CallOptions } from './http.js';
import { pathOf } from './http.js';

/** The configured providers as this instance sees them, the default first. */
export function listProviders(api: Api, { signal }: CallOptions = {}): Promise<ProviderList> {
  return api.json({ path: pathOf('providers'), signal });
}
