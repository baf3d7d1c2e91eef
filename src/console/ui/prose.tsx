/** A draft as a page shows it: a safe part of Markdown as elements. All else stays text, HTML too. */
import type { ComponentChildren } from 'preact';
import { useMemo } from 'preact/hooks';
import type { Block } from '../record/draft-blocks.js';
import { draftBlocks } from '../record/draft-blocks.js';
import type { Inline } from '../record/draft-inlines.js';

export function Prose({ text }: { readonly text: string }) {
  const blocks = useMemo(() => draftBlocks(text), [text]);
  return <div class="prose">{blocks.map(blockShown)}</div>;
}

function blockShown(block: Block, key: number) {
  switch (block.kind) {
    case 'paragraph':
      return <p key={key}>{inlinesShown(block.inlines)}</p>;
    case 'heading': {
      const Heading = `h${block.level}` as const;
      return <Heading key={key}>{inlinesShown(block.inlines)}</Heading>;
    }
    case 'quote':
      return <blockquote key={key}>{block.blocks.map(blockShown)}</blockquote>;
    case 'list': {
      const items = block.items.map((item, index) => <li key={index}>{itemShown(item)}</li>);
      if (block.start === null) return <ul key={key}>{items}</ul>;
      return (
        <ol key={key} start={block.start}>
          {items}
        </ol>
      );
    }
    case 'code':
      return (
        <pre key={key} tabIndex={0}>
          <code>{block.text}</code>
        </pre>
      );
    case 'rule':
      return <hr key={key} />;
    default:
      return block satisfies never;
  }
}

/** An item of one paragraph is no paragraph of its own. */
function itemShown(blocks: readonly Block[]): ComponentChildren {
  const [first, ...rest] = blocks;
  if (first?.kind !== 'paragraph') return blocks.map(blockShown);
  return [inlinesShown(first.inlines), ...rest.map(blockShown)];
}

function inlinesShown(inlines: readonly Inline[]): ComponentChildren {
  return inlines.map((inline, key) => {
    switch (inline.kind) {
      case 'text':
        return inline.text;
      case 'code':
        return <code key={key}>{inline.text}</code>;
      case 'strong':
        return <strong key={key}>{inlinesShown(inline.inlines)}</strong>;
      case 'emphasis':
        return <em key={key}>{inlinesShown(inline.inlines)}</em>;
      case 'link':
        return (
          <a key={key} href={inline.href} target="_blank" rel="noopener noreferrer nofollow">
            {inlinesShown(inline.inlines)}
          </a>
        );
      case 'break':
        return <br key={key} />;
      default:
        return inline satisfies never;
    }
  });
}
