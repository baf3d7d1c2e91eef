/** Types for a package without types that TypeScript can resolve. */

declare module 'markdown-it-footnote' {
  import type { MarkdownIt } from 'markdown-it';

  export default function footnotes(markdown: MarkdownIt): void;
}
