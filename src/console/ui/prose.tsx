/** Shows a draft: Markdown as elements, never as HTML. */
import type { ComponentChildren } from 'preact';
import { createContext } from 'preact';
import { useContext, useMemo } from 'preact/hooks';
import type { DraftElement, DraftNode } from '../record/draft-tree.js';
import { draftTree } from '../record/draft-tree.js';
import type { Citation } from '../record/sources.js';
import { withCitations } from '../record/sources.js';
import { markdown, useChunk } from './chunks.js';

/** How texts show the marks of known sources, by mark. */
export const Citations = createContext<ReadonlyMap<string, Citation>>(new Map());

interface ProseProps {
  readonly text: string;
  /** Default: those of the page. */
  readonly citations?: ReadonlyMap<string, Citation>;
}

/** Shows the plain text while the Markdown parser loads, or if it cannot load. */
export function Prose({ text, citations: own }: ProseProps) {
  const ofPage = useContext(Citations);
  const citations = own ?? ofPage;
  const { value: loaded } = useChunk(markdown).state;
  const tree = useMemo(
    () => (loaded.status === 'ready' ? withCitations(draftTree(loaded.value.tokensOf(text)), citations) : null),
    [loaded, text, citations],
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
    case 'cite':
      return <CitationMark {...words}>{shown(children)}</CitationMark>;
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

interface CitationMarkProps extends Pick<DraftElement, 'href' | 'title'> {
  readonly children: ComponentChildren;
}

function CitationMark({ href, title, children }: CitationMarkProps) {
  if (href === undefined) return <cite title={title}>{children}</cite>;
  return (
    <a class="cite" href={href} title={title} aria-label={title}>
      {children}
    </a>
  );
}
