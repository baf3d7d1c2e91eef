/** A draft's words as a person reads them, without the signs of its Markdown: for excerpts, and for what has changed. */
import type { Block } from './draft-blocks.js';
import { draftBlocks } from './draft-blocks.js';
import type { Inline } from './draft-inlines.js';

/** A paragraph, a heading or an item is a line each, a blank line between blocks. Targets of links stay: they are words too. */
export function plainDraft(draft: string): string {
  return linesOf(draftBlocks(draft)).join('\n');
}

function linesOf(blocks: readonly Block[]): readonly string[] {
  return blocks.flatMap((block, at) => (at === 0 ? linesOfBlock(block) : ['', ...linesOfBlock(block)]));
}

function linesOfBlock(block: Block): readonly string[] {
  switch (block.kind) {
    case 'paragraph':
    case 'heading':
      return wordsOf(block.inlines).split('\n');
    case 'quote':
      return linesOf(block.blocks).map((line) => `  ${line}`);
    case 'list':
      return block.items.flatMap((item, at) => {
        const mark = block.start === null ? '•' : `${block.start + at}.`;
        return linesOf(item).map((line, index) => `${index === 0 ? mark : ' '.repeat(mark.length)} ${line}`);
      });
    case 'code':
      return block.text.split('\n');
    case 'rule':
      return ['—'];
    default:
      return block satisfies never;
  }
}

/** Lines of a paragraph run on; only a break that is meant stays. */
function wordsOf(inlines: readonly Inline[]): string {
  return inlines.map(wordsOfInline).join('');
}

function wordsOfInline(inline: Inline): string {
  switch (inline.kind) {
    case 'text':
      return inline.text.replace(/\s*\n\s*/g, ' ');
    case 'code':
      return inline.text;
    case 'break':
      return '\n';
    case 'link': {
      const words = wordsOf(inline.inlines);
      return words === inline.href ? words : `${words} (${inline.href})`;
    }
    case 'strong':
    case 'emphasis':
      return wordsOf(inline.inlines);
    default:
      return inline satisfies never;
  }
}
