/** Reads the list of results that Tavily and SearXNG both give: `results`, each with `url`, `title`, `content`, `score`. */
import type { JsonAnswer } from './ask-json.js';
import type { SearchOutcome, SearchResult } from './web-search.js';

/** The results of an answer; entries without an address are left out. `provider` begins the fault. */
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
