/** Labels of nodes, which stand in one line: in headings of joined drafts, in errors and in diagrams. */

/** Control characters, U+0085 among them, and the line and paragraph separators of Unicode. */
const BREAKING = /[\p{Cc}\u2028\u2029]+/gu;

/**
 * A label in one line: a space replaces line breaks and control characters. The service refuses requests with labels that
 * hold them, but an id may hold them, and so may a graph that an older version recorded.
 */
export function labelInOneLine(label: string): string {
  return label.replace(BREAKING, ' ');
}
