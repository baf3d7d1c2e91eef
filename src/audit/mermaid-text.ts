/** Texts that anybody may have written, as labels in Mermaid diagrams. */
import { clipped } from './in-short.js';

/** Most code points of a label. */
const MAX_LABEL_CHARS = 60;

/** All but letters, digits and a space: whatever else there is may mean something to Mermaid, to HTML or to both. */
const SPECIAL = /[^\p{L}\p{N} ]/gu;
/** A word that Mermaid reads as a statement of its own wherever in a line it stands. */
const STATEMENT = /d(?=irection)/gi;
/** What is not seen, ends a line or turns its direction. */
const UNSEEN = /[\p{C}\p{Z}]+/gu;

/**
 * A text as part of a label that no parser takes for anything but text: special characters as Mermaid's numeric
 * entity codes, white space and control characters as one space, a long text cut.
 */
export function mermaidText(text: string, maxChars = MAX_LABEL_CHARS): string {
  const line = clipped(text, 4 * maxChars)
    .replace(UNSEEN, ' ')
    .trim();
  const points = [...line];
  const shown = points.length <= maxChars ? line : `${points.slice(0, maxChars - 1).join('')}…`;
  return shown.replace(SPECIAL, encoded).replace(STATEMENT, encoded);
}

function encoded(character: string): string {
  return `#${character.codePointAt(0)};`;
}
