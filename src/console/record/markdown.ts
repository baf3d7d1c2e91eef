/** Reads Markdown with markdown-it. A chunk of its own: see `ui/chunks.ts`. */
import type { Token } from 'markdown-it';
import MarkdownIt from 'markdown-it';
import footnotes from 'markdown-it-footnote';

/** Nesting that markdown-it reads; it drops what is nested deeper. */
const MOST_DEEP = 100;

/** CommonMark with tables, strikethrough, footnotes, and plain URLs as links. HTML stays text. */
const markdown = new MarkdownIt({ html: false, linkify: true, maxNesting: MOST_DEEP }).use(footnotes);
markdown.validateLink = (url) => /^(https?|mailto):/i.test(url);
markdown.linkify.set({ fuzzyLink: false, fuzzyEmail: false });
// These rules move or drop text, but a person who approves a draft must see all of it.
markdown.disable(['reference', 'footnote_inline', 'footnote_tail']);

const paragraphs = new MarkdownIt('zero');

/** The tokens of a draft; of one that nests too deep, paragraphs as they are written. */
export function tokensOf(draft: string): readonly Token[] {
  const tokens = markdown.parse(draft, {});
  return tokens.some(({ level }) => level >= MOST_DEEP - 1) ? paragraphs.parse(draft, {}) : tokens;
}
