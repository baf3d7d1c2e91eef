/** A text of any length: the browser lays out only the blocks in sight. */
import type { ComponentChildren } from 'preact';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import type { TextRange, TextBlock } from '../record/find-in-text.js';
import { blocksOf } from '../record/find-in-text.js';

interface LongTextProps {
  readonly text: string;
  /** Accessible name. */
  readonly label?: string;
  /** Places to mark, and the number of the one to show. Default: none. */
  readonly places?: readonly TextRange[];
  readonly current?: number;
}

export function LongText({ text, label, places = [], current = 0 }: LongTextProps) {
  const view = useRef<HTMLPreElement>(null);
  const blocks = useMemo(() => blocksOf(text), [text]);
  // The same elements at each render, so that only the marked blocks change.
  const plain = useMemo(() => blocks.map((block) => <Block key={block.from} block={block} />), [blocks]);
  const shown = places[current];
  useEffect(() => {
    const [box, mark] = [view.current, view.current?.querySelector('mark.current') ?? null];
    if (box === null || mark === null) return;
    mark.scrollIntoView({ block: 'nearest' });
    // To the middle of the text, without a move of the page.
    box.scrollTop += mark.getBoundingClientRect().top - box.getBoundingClientRect().top - box.clientHeight / 2;
  }, [shown]);
  return (
    <pre
      ref={view}
      class="raw long-text"
      role={label === undefined ? undefined : 'group'}
      aria-label={label}
      tabIndex={0}
    >
      {blocks.map((block, at) =>
        shown === undefined || !isIn(block, shown) ? (
          plain[at]
        ) : (
          <Block key={block.from} block={block} places={places.filter((place) => isIn(block, place))} shown={shown} />
        ),
      )}
    </pre>
  );
}

function isIn({ from, text }: TextBlock, place: TextRange): boolean {
  return place.from < from + text.length && place.to > from;
}

interface BlockProps {
  readonly block: TextBlock;
  readonly places?: readonly TextRange[];
  readonly shown?: TextRange;
}

/** Pixels of a line and characters in it, to estimate the height of a block that is not laid out. */
const LINE_PX = 18;
const LINE_CHARS = 90;

function Block({ block: { from, text }, places = [], shown }: BlockProps) {
  const lines = useMemo(
    () => text.split('\n').reduce((sum, { length }) => sum + Math.max(1, Math.ceil(length / LINE_CHARS)), 0),
    [text],
  );
  const parts: ComponentChildren[] = [];
  let end = 0;
  for (const place of places) {
    const [start, stop] = [Math.max(place.from - from, 0), Math.min(place.to - from, text.length)];
    parts.push(
      text.slice(end, start),
      <mark class={place === shown ? 'current' : undefined}>{text.slice(start, stop)}</mark>,
    );
    end = stop;
  }
  return (
    <span class="block" style={{ containIntrinsicBlockSize: `auto ${lines * LINE_PX}px` }}>
      {parts}
      {text.slice(end)}
    </span>
  );
}
