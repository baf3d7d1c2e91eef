/** Parses Markdown with markdown-it. In the console it loads as a separate chunk: see `console/ui/chunks.ts`. */
import type { Token } from 'markdown-it';
import MarkdownIt from 'markdown-it';
import footnotes from 'markdown-it-footnote';

/** Deepest nesting: markdown-it drops what is nested deeper. */
const MOST_DEEP = 100;

/** CommonMark with tables, strikethrough, footnotes and links for plain URLs. HTML stays text. */
const markdown = new MarkdownIt({ html: false, linkify: true, maxNesting: MOST_DEEP }).use(footnotes);
markdown.validateLink = (url) => /^(https?|mailto):/i.test(url);
markdown.linkify.set({ fuzzyLink: false, fuzzyEmail: false });
// Links without a scheme are never shown, and to look for them takes time that grows with the square of a line.
markdown.linkify.add('//', null);
// These rules move or drop text, but an approver must see all of a draft.
markdown.disable(['reference', 'footnote_inline', 'footnote_tail']);

const paragraphs = new MarkdownIt('zero');

/** The tokens of a draft. A draft that is nested too deep becomes plain paragraphs. */
export function tokensOf(draft: string): readonly Token[] {
  const tokens = markdown.parse(draft, {});
  return tokens.some(({ level }) => level >= MOST_DEEP - 1) ? paragraphs.parse(draft, {}) : tokens;
}
