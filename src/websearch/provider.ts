/** The web search that the environment chooses. */
import type { Config } from '../config.js';
import type { SearchProvider } from '../council/tools/web-search.js';
import { askJson, readResults } from './json-exchange.js';

/** Builds the adapter of a provider; sends nothing. Null: the environment names none. */
export function searchProvider(settings: Config['webSearch']): SearchProvider | null {
  if (settings === null) return null;
  return settings.name === 'tavily' ? tavily(settings) : searxng(settings);
}

/**
 * Tavily: `POST {baseUrl}/search` with the key as a bearer token (docs.tavily.com, "Search"). Asks for quotations only,
 * not for the answers and whole pages it could add.
 */
export function tavily({ apiKey, baseUrl }: { readonly apiKey: string; readonly baseUrl: string }): SearchProvider {
  return {
    name: 'tavily',
    async search(query, signal) {
      const headers = { 'Content-Type': 'application/json', Authorization: `Bearer ${apiKey}` };
      const body = JSON.stringify({ query, max_results: 8, search_depth: 'basic' });
      return readResults(await askJson(`${baseUrl}/search`, { method: 'POST', headers, body }, signal), 'Tavily');
    },
  };
}

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
