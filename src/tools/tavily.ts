import { askJson } from './ask-json.js';
import { readResults } from './result-list.js';
import type { SearchProvider } from './web-search.js';

/**
 * Tavily: `POST {baseUrl}/search` with the key as a bearer token (docs.tavily.com, "Search"). Asks for quotations only,
 * for none of the answers and whole pages it could add.
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
