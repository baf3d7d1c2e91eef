/** Labels of nodes, which stand in one line: in headings of joined drafts, in errors and in diagrams. */

/** Control characters, U+0085 among them, and the line and paragraph separators of Unicode. */
const BREAKING = /[\p{Cc}\u2028\u2029]+/gu;

/**
 * A text as a label: in one line, with a space for line breaks and control characters. Requests with such a label are
 * refused; it may come from an id, or from a graph that was frozen before labels were restricted.
 */
export function labelInOneLine(label: string): string {
  return label.replace(BREAKING, ' ');
}
