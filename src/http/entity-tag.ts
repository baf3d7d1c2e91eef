/** Entity tags: what a client has seen, named for conditional requests (RFC 9110, sections 8.8.3 and 13.1). */
import type { Context } from 'koa';

/** Headers of a tagged answer: private to the client, and revalidated before each reuse. */
export function tagged(tag: string): { readonly ETag: string; readonly 'Cache-Control': string } {
  return { ETag: `"${tag}"`, 'Cache-Control': 'private, no-cache' };
}

/** Whether the client has what a tag names already: If-None-Match, compared weakly (section 13.1.2). */
export function isKnown(ctx: Context, { ETag: tag }: { readonly ETag: string }): boolean {
  const known = ctx.get('If-None-Match').split(',');
  return known.some((each) => each.trim() === '*' || each.trim().replace(/^W\//, '') === tag);
}

/**
 * The condition that If-Match sets on the current tag, compared strongly: a weak tag, or what is no tag, matches
 * nothing (section 13.1.1). Null: no condition, or `*`, which any tag meets.
 */
export function ifMatch(ctx: Context): ((tag: string) => boolean) | null {
  const sent = ctx.req.headers['if-match'];
  if (sent === undefined || sent.trim() === '*') return null;
  const wanted = sent.split(',').map((each) => each.trim());
  return (tag) => wanted.includes(tagged(tag).ETag);
}

/** If-Match as an OpenAPI parameter. */
export const IF_MATCH = {
  name: 'If-Match',
  in: 'header',
  required: false,
  description:
    'ETags of earlier answers: 412 when none of them is still that of the blueprint, and nothing is changed.',
  schema: { type: 'string' },
} as const;
