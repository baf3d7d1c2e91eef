/** The web search that the settings choose: Tavily or SearXNG. */
import type { Config } from '../config.js';
import type { SearchOutcome, SearchProvider, SearchResult } from '../council/tools/web-search.js';
import { BodyTooLarge, boundedText, fieldOf, holdsManyValues, isList } from '../system/untrusted.js';

/** Builds the adapter of a provider, or returns null if the settings name none. Sends nothing. */
export function searchProvider(settings: Config['webSearch']): SearchProvider | null {
  switch (settings?.name) {
    case undefined:
      return null;
    case 'tavily':
      return tavily(settings);
    case 'searxng':
      return searxng(settings);
    default:
      return settings satisfies never;
  }
}

/**
 * Tavily: `POST {baseUrl}/search` with the key as a bearer token (docs.tavily.com, "Search"). Asks for quotations, not for
 * answers or complete pages.
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

/** The result. `fault` is one line without any text of the provider. */
type JsonAnswer =
  | { readonly isRead: true; readonly body: unknown }
  | { readonly isRead: false; readonly fault: string };

/**
 * Sends a request and reads a JSON answer of at most 2 MiB. Does not follow redirects: an address that the operator has
 * not set would receive the key.
 *
 * @throws only when the signal aborts
 */
async function askJson(url: string, init: RequestInit, signal: AbortSignal): Promise<JsonAnswer> {
  try {
    const response = await fetch(url, { ...init, redirect: 'manual', signal });
    if (!response.ok) {
      await response.body?.cancel();
      return { isRead: false, fault: faultOfStatus(response.status) };
    }
    const text = await boundedText(response, MAX_BODY_BYTES);
    if (holdsManyValues(text)) return { isRead: false, fault: 'its answer is too large' };
    const body: unknown = JSON.parse(text);
    return { isRead: true, body };
  } catch (error) {
    if (signal.aborted) throw error;
    if (error instanceof SyntaxError) return { isRead: false, fault: 'its answer is not JSON' };
    if (error instanceof BodyTooLarge) return { isRead: false, fault: 'its answer is too large' };
    return { isRead: false, fault: 'it could not be reached' };
  }
}

function faultOfStatus(status: number): string {
  if (status === 401 || status === 403) return `it refused the request (${status}), check its key`;
  if (status === 429) return `it limits requests now (${status})`;
  return status >= 300 && status < 400 ? `it answered with a redirect (${status})` : `it answered ${status}`;
}

const MAX_BODY_BYTES = 2 * 1024 * 1024;

/**
 * The results of an answer of Tavily or SearXNG: `results`, each with `url`, `title`, `content`, `score`. Entries without
 * a URL are omitted.
 */
function readResults(answer: JsonAnswer, provider: string): SearchOutcome {
  if (!answer.isRead) return { isFound: false, fault: `${provider} gave no results: ${answer.fault}` };
  const results = fieldOf(answer.body, 'results');
  if (!isList(results)) {
    return { isFound: false, fault: `${provider} gave no results: its answer holds no list of them` };
  }
  return { isFound: true, results: results.slice(0, MAX_ENTRIES).flatMap(resultOf) };
}

function resultOf(entry: unknown): readonly SearchResult[] {
  const [url, title, content, score] = ['url', 'title', 'content', 'score'].map((name) => fieldOf(entry, name));
  if (typeof url !== 'string') return [];
  return [
    {
      url,
      title: typeof title === 'string' ? title : '',
      snippet: typeof content === 'string' ? content : '',
      score: typeof score === 'number' && Number.isFinite(score) ? score : null,
    },
  ];
}

const MAX_ENTRIES = 50;
