/** Shows a draft: Markdown as elements, never as HTML. */
import type { ComponentChildren } from 'preact';
import { useMemo } from 'preact/hooks';
import type { DraftElement, DraftNode } from '../record/draft-tree.js';
import { draftTree } from '../record/draft-tree.js';
import { markdown, useChunk } from './chunks.js';

/** Shows the plain text while the Markdown parser loads, or if it cannot load. */
export function Prose({ text }: { readonly text: string }) {
  const { value: loaded } = useChunk(markdown).state;
  const tree = useMemo(
    () => (loaded.status === 'ready' ? draftTree(loaded.value.tokensOf(text)) : null),
    [loaded, text],
  );
  return tree === null ? <div class="prose unread">{text}</div> : <div class="prose">{shown(tree)}</div>;
}

function shown(nodes: readonly DraftNode[]): ComponentChildren {
  return nodes.map((node, key) => (typeof node === 'string' ? node : <Element key={key} {...node} />));
}

function Element({ tag: Tag, children, start, align, isChecked, ...words }: DraftElement) {
  switch (Tag) {
    case 'a':
      return (
        <a {...words} target="_blank" rel="noopener noreferrer nofollow">
          {shown(children)}
        </a>
      );
    // Both scroll horizontally, by keyboard too.
    case 'pre':
      return (
        <pre {...words} tabIndex={0}>
          {shown(children)}
        </pre>
      );
    case 'table':
      return (
        <div class="table" tabIndex={0}>
          <table>{shown(children)}</table>
        </div>
      );
    case 'th':
    case 'td':
      return <Tag style={align && { textAlign: align }}>{shown(children)}</Tag>;
    case 'ol':
      return <ol start={start}>{shown(children)}</ol>;
    case 'input':
      return <input type="checkbox" disabled checked={isChecked} aria-label={isChecked === true ? 'Done' : 'To do'} />;
    case 'aside':
      return <aside class="footnote">{shown(children)}</aside>;
    case 'br':
    case 'hr':
      return <Tag />;
    default:
      return <Tag>{shown(children)}</Tag>;
  }
}
