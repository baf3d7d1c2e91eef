/** Shows a draft: Markdown as elements, never as HTML. */
import type { ComponentChildren } from 'preact';
import { createContext } from 'preact';
import { useContext, useEffect, useMemo } from 'preact/hooks';
import type { DraftElement, DraftNode } from '../../draft/draft-tree.js';
import { draftTree } from '../../draft/draft-tree.js';
import type { Citation } from '../../draft/sources.js';
import { withCitations } from '../../draft/sources.js';
import type { DraftSource } from '../../generated/schemas.js';
import { markdown, quotations, useChunk } from './chunks.js';

/** How texts show the marks of known sources, by mark. */
export const Citations = createContext<ReadonlyMap<string, Citation>>(new Map());

export interface ProseProps {
  readonly text: string;
  /** Default: those of the page. */
  readonly citations?: ReadonlyMap<string, Citation>;
  /** What the text cites, to mark the quotations that are missing there. Default: nothing. */
  readonly quoted?: readonly DraftSource[];
}

/** Shows the plain text while the Markdown parser loads, or if it cannot load. */
export function Prose({ text, citations: own, quoted = NOTHING }: ProseProps) {
  const ofPage = useContext(Citations);
  const citations = own ?? ofPage;
  const { value: loaded } = useChunk(markdown).state;
  const isQuoting = quoted.length > 0;
  useEffect(() => {
    if (isQuoting) quotations.load();
  }, [isQuoting]);
  const { value: marking } = quotations.state;
  const tree = useMemo(() => {
    if (loaded.status !== 'ready') return null;
    const { tokensOf } = loaded.value;
    if (!isQuoting || marking.status !== 'ready') return withCitations(draftTree(tokensOf(text)), citations);
    const { withMissing, withSigns } = marking.value;
    return withCitations(withMissing(draftTree(tokensOf(withSigns(text, quoted)))), citations);
  }, [loaded, marking, text, citations, quoted]);
  return tree === null ? <div class="prose unread">{text}</div> : <div class="prose">{shown(tree)}</div>;
}

const NOTHING: readonly DraftSource[] = [];

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
    case 'mark':
      return <mark title={words.title}>{shown(children)}</mark>;
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
