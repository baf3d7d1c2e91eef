/** API keys, for tests of a service that needs them. */
import type { Scope } from '../../src/generated/schemas.js';
import { documentedAt } from './documented.js';
import type { RestClient } from './rest-client.js';
import { restClient } from './rest-client.js';

export const ALL_SCOPES: readonly Scope[] = ['read', 'run', 'approve', 'author', 'documents', 'audit', 'admin'];

/** The headers by which a key is sent. */
export function bearer(key: string): { readonly Authorization: string } {
  return { Authorization: `Bearer ${key}` };
}

/** A client that sends a key. */
export function restWith(url: string, key: string): RestClient {
  return restClient(url, bearer(key));
}

/** Adds the first key of a service. From then on every request needs a key. */
export async function addFirstKey(url: string, scopes: readonly Scope[] = ALL_SCOPES, name = 'first'): Promise<string> {
  // Reads the OpenAPI document while that needs no key.
  await documentedAt(url);
  return await addKey(restClient(url), { name, scopes });
}

/** Adds a key. Returns its text. */
export async function addKey(
  by: RestClient,
  request: { readonly name: string; readonly scopes: readonly Scope[]; readonly expires_in?: string },
): Promise<string> {
  return by.read(await by.post('/api/keys', request), 201, 'new-key.json').key;
}

/** The name and value of the cookie that a sign-in sets. */
export async function signIn(url: string, key: string): Promise<string> {
  const reply = await fetch(`${url}/api/session`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ key }),
  });
  const [cookie = ''] = reply.headers.getSetCookie();
  return cookie.split(';')[0] ?? '';
}
