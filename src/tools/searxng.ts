import { askJson } from './ask-json.js';
import { readResults } from './result-list.js';
import type { SearchProvider } from './web-search.js';

/**
 * SearXNG: `GET {baseUrl}/search?q=…&format=json` (docs.searxng.org, "Search API"). The instance must list `json` among
 * its `search.formats`; without it, it answers 403.
 */
export function searxng({ baseUrl }: { readonly baseUrl: string }): SearchProvider {
  return {
    name: 'searxng',
    async search(query, signal) {
      const parameters = new URLSearchParams({ q: query, format: 'json' });
      const headers = { Accept: 'application/json' };
      return readResults(await askJson(`${baseUrl}/search?${parameters.toString()}`, { headers }, signal), 'SearXNG');
    },
  };
}
