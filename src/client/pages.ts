/** Lists in pages. */
import type { Api, ApiRequest, CallOptions, Reply } from './http.js';

type ListRequest = Pick<ApiRequest, 'path' | 'query'> & CallOptions;

/** All items of a list, for `for await`. Requests each page when the loop needs it. */
export interface Pages<T> extends AsyncIterable<T> {
  /** The list page by page. */
  pages(): AsyncIterable<readonly T[]>;
}

export function pagesOf<T>(api: Api, first: ListRequest): Pages<T> {
  async function* pages(): AsyncGenerator<readonly T[], void> {
    for (let request: ListRequest | null = first; request !== null;) {
      const page: Reply<readonly T[]> = await api.reply<readonly T[]>(request);
      yield page.value;
      const query = nextQuery(page.headers.get('Link'));
      request = query === null ? null : { ...first, query };
    }
  }
  async function* items(): AsyncGenerator<T, void> {
    for await (const page of pages()) yield* page;
  }
  return { pages, [Symbol.asyncIterator]: items };
}

/** The query of the next page (RFC 8288). The path is ignored, because a proxy may have changed it. */
function nextQuery(link: string | null): Readonly<Record<string, string>> | null {
  const next = /<[^>]*\?([^>]*)>\s*;\s*rel="?next"?/.exec(link ?? '')?.[1];
  return next === undefined ? null : Object.fromEntries(new URLSearchParams(next));
}
