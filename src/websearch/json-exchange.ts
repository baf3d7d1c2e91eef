/** One HTTP exchange with a search provider whose address the operator has set. */
import { BodyTooLarge, boundedText } from '../system/untrusted.js';
import type { SearchOutcome, SearchResult } from '../council/tools/web-search.js';

/** The result; `fault` is one line that quotes nothing of the provider. */
type JsonAnswer =
  { readonly isRead: true; readonly body: unknown } | { readonly isRead: false; readonly fault: string };

/**
 * Sends a request and reads a JSON answer of at most 2 MiB. Redirects are not followed: the key would go with them, to
 * an address that the operator has not set.
 *
 * @throws only when the signal aborts
 */
export async function askJson(url: string, init: RequestInit, signal: AbortSignal): Promise<JsonAnswer> {
  try {
    const response = await fetch(url, { ...init, redirect: 'manual', signal });
    if (!response.ok) {
      await response.body?.cancel();
      return { isRead: false, fault: faultOfStatus(response.status) };
    }
    return { isRead: true, body: JSON.parse(await boundedText(response, MAX_BODY_BYTES)) as unknown };
  } catch (error) {
    if (signal.aborted) throw error;
    if (error instanceof BodyTooLarge) return { isRead: false, fault: 'its answer is too large' };
    if (error instanceof SyntaxError) return { isRead: false, fault: 'its answer is no JSON' };
    return { isRead: false, fault: 'it could not be reached' };
  }
}

function faultOfStatus(status: number): string {
  if (status === 401 || status === 403) return `it refused the request (${status}), which the operator can mend`;
  if (status === 429) return `it has no room now (${status})`;
  return status >= 300 && status < 400 ? `it answered with a redirect (${status})` : `it answered ${status}`;
}

const MAX_BODY_BYTES = 2 * 1024 * 1024;

/**
 * The results of an answer of Tavily or SearXNG: `results`, each with `url`, `title`, `content`, `score`. Entries
 * without a URL are left out. `provider` begins the fault.
 */
export function readResults(answer: JsonAnswer, provider: string): SearchOutcome {
  if (!answer.isRead) return { isFound: false, fault: `${provider} gave no results: ${answer.fault}` };
  const results = fieldOf(answer.body, 'results');
  if (!Array.isArray(results)) {
    return { isFound: false, fault: `${provider} gave no results: its answer holds no list of them` };
  }
  const entries = results as readonly unknown[];
  return { isFound: true, results: entries.slice(0, MAX_ENTRIES).flatMap(resultOf) };
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

function fieldOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
}

const MAX_ENTRIES = 50;
