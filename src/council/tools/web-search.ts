/**
 * The tool that searches the web. It returns the provider's quotations and never opens a page: the service sends no
 * request to an address from a search result or a model.
 */
import type { Tool } from './tool.js';
import { queryOf, renderItems } from './tool.js';
import { present } from '../../system/element.js';

export interface SearchResult {
  readonly url: string;
  readonly title: string;
  /** The provider's quotation of the page. */
  readonly snippet: string;
  /** The provider's score, or null if it gives none. */
  readonly score: number | null;
}

/** The outcome of a search. `fault` is one line for the model and the log, without keys. */
export type SearchOutcome =
  | { readonly isFound: true; readonly results: readonly SearchResult[] }
  | { readonly isFound: false; readonly fault: string };

/** A search engine. Adapters: Tavily and SearXNG. */
export interface SearchProvider {
  readonly name: string;
  /** Best first. Rejects only when the signal aborts. */
  search(query: string, signal: AbortSignal): Promise<SearchOutcome>;
}

/** `web_search(query)` through a provider. */
export function webSearch(provider: SearchProvider): Tool {
  return {
    grant: 'webSearch',
    name: 'web_search',
    description: 'Searches the web. Answers with titles, addresses and short quotations of the pages found.',
    parameters: {
      type: 'object',
      properties: { query: { type: 'string', description: 'What to look for, as one would type it.' } },
      required: ['query'],
    },
    isAvailable: () => true,
    read(given) {
      const query = queryOf(given['query'], MAX_QUERY_CHARS);
      if (query === null) return { isUsable: false, fault: '"query" must be a text that is not empty' };
      return { isUsable: true, arguments: { query } };
    },
    async run(given, { signal, maxBytes }) {
      const outcome = await provider.search(String(present(given['query'], 'query')), signal);
      if (!outcome.isFound) return outcome;
      const items = outcome.results.filter(isWebPage).slice(0, MAX_RESULTS).map(itemOf);
      return { isFound: true, ...renderItems('page', items, maxBytes) };
    },
  };
}

/**
 * Whether a result is a web page that models and people may open. Normalization can make an address nine times as long, so
 * the limit applies to both forms.
 */
function isWebPage({ url }: SearchResult): boolean {
  if (url.length > MAX_URL_CHARS || !URL.canParse(url)) return false;
  const { protocol, href } = new URL(url);
  return href.length <= MAX_URL_CHARS && /^https?:$/.test(protocol);
}

function itemOf({ url, title, snippet, score }: SearchResult) {
  const name = title.slice(0, MAX_TITLE_CHARS).toWellFormed();
  const { href } = new URL(url);
  return {
    attributes: { cite: href, title: name },
    text: snippet.slice(0, MAX_SNIPPET_CHARS),
    hitOf: (shown: string) => ({ url: href, title: name, score, text: shown }),
  };
}

/** Limit of Tavily. */
const MAX_QUERY_CHARS = 400;
const MAX_RESULTS = 8;
const MAX_URL_CHARS = 1000;
const MAX_TITLE_CHARS = 200;
const MAX_SNIPPET_CHARS = 4000;
