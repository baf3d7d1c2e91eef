/** What the target of an upgrade asks for. */

export type Asked =
  | { readonly stream: 'default'; readonly runId: string }
  /** The rich stream's events with a revision above `after`; -1: all. */
  | { readonly stream: 'all'; readonly runId: string; readonly after: number }
  /** The rich stream, from nobody knows where: a guess would leave a gap or repeat events. */
  | { readonly stream: 'unclear'; readonly detail: string };

/** Null for a target that is no channel. Of the default stream the query is not looked at. */
export function askedOf(target: string): Asked | null {
  const [path = '', query = ''] = split(target);
  const found = /^\/ws\/council\/([^/]+)\/?$/.exec(path)?.[1];
  if (found === undefined) return null;
  const runId = decoded(found);
  const parameters = new URLSearchParams(query);
  if (!parameters.getAll('events').includes('all')) return { stream: 'default', runId };
  const after = afterIn(parameters.getAll('from'));
  if (after === null) return { stream: 'unclear', detail: 'from: Input should be one whole number of at least -1' };
  return { stream: 'all', runId, after };
}

function split(target: string): readonly string[] {
  const mark = target.indexOf('?');
  return mark < 0 ? [target] : [target.slice(0, mark), target.slice(mark + 1)];
}

function afterIn(texts: readonly string[]): number | null {
  if (texts.length === 0) return -1;
  const [text = ''] = texts;
  const after = Number(text);
  return texts.length === 1 && /^(-1|[0-9]+)$/.test(text) && Number.isSafeInteger(after) ? after : null;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
