/** Drafts as plain text, without Markdown signs. */
import type { DraftElement, DraftNode } from '../../draft/draft-tree.js';

/** A draft as text: one line per paragraph, heading, item and row, and a blank line between blocks. URLs stay. */
export function plainDraft(tree: readonly DraftNode[]): string {
  return linesOf(tree).join('\n');
}

const BLOCKS: ReadonlySet<string> = new Set([
  ...['p', 'h3', 'h4', 'h5', 'h6', 'blockquote', 'ul', 'ol', 'pre', 'hr', 'table', 'aside'],
]);

/** Text between blocks, as in list items, is a block too. */
function linesOf(nodes: readonly DraftNode[]): readonly string[] {
  const blocks: string[][] = [];
  let words = '';
  const endText = (): void => {
    if (words !== '') blocks.push(words.split('\n'));
    words = '';
  };
  for (const node of nodes) {
    if (typeof node === 'string' || !BLOCKS.has(node.tag)) words += wordsOf(node);
    else {
      endText();
      blocks.push([...linesOfBlock(node)]);
    }
  }
  endText();
  return blocks.flatMap((lines, at) => (at === 0 ? lines : ['', ...lines]));
}

function linesOfBlock({ tag, children, start = 1 }: DraftElement): readonly string[] {
  switch (tag) {
    case 'blockquote':
      return linesOf(children).map((line) => `  ${line}`);
    case 'ul':
    case 'ol':
      return elementsIn(children).flatMap((item, at) => {
        const mark = tag === 'ul' ? '•' : `${start + at}.`;
        return marked(mark, linesOf(item.children));
      });
    case 'pre':
      return elementsIn(children).flatMap(textOf).join('').split('\n');
    case 'table':
      return elementsIn(children).flatMap((part) =>
        elementsIn(part.children).map((row) => row.children.map(wordsOf).join(' | ')),
      );
    case 'hr':
      return ['—'];
    case 'aside':
      return marked(children.slice(0, 1).map(wordsOf).join(''), linesOf(children.slice(1)));
    default:
      return linesOf(children);
  }
}

function marked(mark: string, lines: readonly string[]): readonly string[] {
  return lines.map((line, at) => `${at === 0 ? mark : ' '.repeat(mark.length)} ${line}`);
}

function elementsIn(nodes: readonly DraftNode[]): readonly DraftElement[] {
  return nodes.filter((node) => typeof node !== 'string');
}

function textOf({ children }: DraftElement): readonly string[] {
  return children.filter((node) => typeof node === 'string');
}

/** Joins the lines of a paragraph; hard breaks stay. */
function wordsOf(node: DraftNode): string {
  if (typeof node === 'string') return node.replace(/\s*\n\s*/g, ' ');
  const words = node.children.map(wordsOf).join('');
  switch (node.tag) {
    case 'br':
      return '\n';
    case 'input':
      return node.isChecked === true ? '☑ ' : '☐ ';
    case 'sup':
      return `[${words}]`;
    case 'a':
      return words === node.href ? words : `${words} (${node.href})`;
    default:
      return words;
  }
}

/** Longest beginning of a text that is cleaned, in characters. */
const EXCERPT_FROM_CHARS = 2_000;

/** The beginning of a text without most Markdown signs. For lists, whose pages do not load the Markdown parser. */
export function withoutMarks(text: string): string {
  return text
    .slice(0, EXCERPT_FROM_CHARS)
    .replace(/^[ \t]*(?:#{1,6}|>|[-*+])[ \t]+/gm, '')
    .replace(/!?\[([^[\]]*)\]\([^()\s]*\)/g, '$1')
    .replace(/(?<![\p{L}\p{N}_*`~])(\*{1,3}|_{1,3}|`+|~~)(?=\S)([^*_`~]+)(?<=\S)\1(?![\p{L}\p{N}_*`~])/gu, '$2');
}
