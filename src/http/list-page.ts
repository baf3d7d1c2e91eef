/** Lists in pages, each with a link to the next one while there is one (RFC 8288). */
import type { Context } from 'koa';

interface Page {
  readonly limit: number;
  readonly offset: number;
}

/** A page of a list, and the headers it is sent with. One item more is asked for, which tells whether more follow. */
export async function pageOf<T, P extends Page>(
  ctx: Context,
  page: P,
  list: (page: P) => Promise<readonly T[]>,
): Promise<{ readonly items: readonly T[]; readonly headers: Readonly<Record<string, string>> }> {
  const found = await list({ ...page, limit: page.limit + 1 });
  return { items: found.slice(0, page.limit), headers: found.length > page.limit ? nextLink(ctx, page) : {} };
}

/** `Link` to the next page: the path as it was asked for, with every other parameter of the query. */
export function nextLink(ctx: Context, { limit, offset }: Page): Readonly<Record<'Link', string>> {
  const query = new URLSearchParams(ctx.querystring);
  query.set('limit', String(limit));
  query.set('offset', String(offset + limit));
  return { Link: `<${ctx.path}?${query.toString()}>; rel="next"` };
}
