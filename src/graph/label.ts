/** Labels of nodes in one line: for headings of joined drafts, errors and diagrams. */

/** Control characters, U+0085 among them, and the line and paragraph separators of Unicode. */
const BREAKING = /[\p{Cc}\u2028\u2029]+/gu;

/**
 * A label in one line: a space replaces line breaks and control characters. The service refuses them in new labels, but
 * ids and graphs of older versions may contain them.
 */
export function labelInOneLine(label: string): string {
  return label.replace(BREAKING, ' ');
}
