/** What the sources of a draft say of its quotations, for those who show them. */
import type { DraftSource } from '../generated/schemas.js';

/** What the sources say of the quotations of a draft. */
interface Judged {
  /** Number of quotations that could be looked up. */
  readonly total: number;
  /** The quotations that none of their sources has. */
  readonly missing: ReadonlySet<string>;
}

export function judgedIn(sources: readonly DraftSource[]): Judged {
  const isFound = new Map<string, boolean>();
  for (const { quoted, quotation } of sources.flatMap(({ citations }) => citations)) {
    if (quoted === null || quotation === null) continue;
    isFound.set(quoted, isFound.get(quoted) === true || quotation !== 'missing');
  }
  return {
    total: isFound.size,
    missing: new Set([...isFound.keys()].filter((quoted) => isFound.get(quoted) === false)),
  };
}

/** How many quotations of a draft were not found, in a sentence, or null if there is none to look up. */
export function quotationsText(sources: readonly DraftSource[]): string | null {
  const { total, missing } = judgedIn(sources);
  if (total === 0) return null;
  if (missing.size === 0) {
    return total === 1
      ? 'The quotation was found in its source.'
      : `All ${total} quotations were found in their source.`;
  }
  if (total === 1) return 'The quotation was not found in its source.';
  const [were, their] = missing.size === 1 ? ['was', 'its'] : ['were', 'their'];
  return `${missing.size} of ${total} quotations ${were} not found in ${their} source.`;
}

/** The quotations of a source that neither it nor a source cited beside it has. */
export function missingOf(source: DraftSource, sources: readonly DraftSource[]): readonly string[] {
  const { missing } = judgedIn(sources);
  return [...new Set(source.citations.flatMap(({ quoted }) => (missing.has(quoted ?? '') ? [quoted ?? ''] : [])))];
}
